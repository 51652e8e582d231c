"""Files of Ansible Vault: encrypted as a whole, and YAML with single `!vault` values.

In the plain text of the second sort a value keeps its tag, `password: !vault secret`: that says which values
are encrypted, also for values that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.secrets.base import SecretsKind, secret_texts
from stackyard.secrets.formats.json_layout import parse_json
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.formats.yaml_scalar import yaml_scalar
from stackyard.secrets.layout import (
    Layout,
    Leaf,
    SecretsSyntaxError,
    Splice,
    apply_splices,
    is_one_line,
    leaves,
)
from stackyard.secrets.sops.expand import replace_leaves
from stackyard.secrets.vault.envelope import VaultFormatError, parse_envelope, seal
from stackyard.secrets.vault.marker import is_vault
from stackyard.secrets.vault.passwords import VaultPassword, encryption_password, open_envelope

if TYPE_CHECKING:
    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.values import Scalar

__all__ = [
    "OpenedInlineVault",
    "OpenedVault",
    "open_inline_vault",
    "open_vault",
    "seal_inline",
    "seal_whole",
    "without_tags",
]

TAG = "!vault"
_TAGS = (TAG, "!vault-encrypted")
_INDENT = 10


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise SecretsSyntaxError(f"{path} is not UTF-8 text.", where=Location(path, line)) from err


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedVault:
    """A file that was encrypted as a whole."""

    path: str
    source: bytes
    plain: bytes = field(repr=False)
    password: VaultPassword
    warnings: tuple[str, ...] = ()

    @property
    def kind(self) -> SecretsKind:
        """How it is protected."""
        return SecretsKind.VAULT

    @property
    def label(self) -> str | None:
        """The label in the header, if there is one."""
        return parse_envelope(_text(self.source, self.path), self.path).label

    def secrets(self) -> frozenset[str]:
        """Return every value, or, where no one knows what is one, every line."""
        layout = self.layout()
        if layout is not None:
            return secret_texts(leaf.value for one in layout.documents for _, leaf in leaves(one.root))
        return frozenset(line.strip() for line in self.plain.decode(errors="surrogateescape").splitlines())

    def layout(self) -> Layout | None:
        """Return the values with their places in the decrypted text; none of a file without structure."""
        suffix = PurePath(self.path.removesuffix(".enc").removesuffix(".vault")).suffix
        parse = {".yaml": parse_yaml, ".yml": parse_yaml, ".json": parse_json}.get(suffix)
        return parse(_text(self.plain, self.path), self.path) if parse else None

    def check(self, plain: bytes) -> None:
        """Refuse YAML or JSON that is none; a file of another sort may hold anything."""
        OpenedVault(path=self.path, source=b"", plain=plain, password=self.password).layout()

    def seal(self, plain: bytes) -> bytes:
        """Encrypt changed plain text with the same password and label."""
        if plain == self.plain:
            return self.source
        self.check(plain)
        return seal(plain, self.password.password, self.label).encode()

    def rekey(self, password: VaultPassword) -> bytes:
        """Encrypt it with another password."""
        return seal(self.plain, password.password, password.label).encode()


def open_vault(source: bytes, path: str, keyring: Keyring) -> OpenedVault:
    """Decrypt a file that was encrypted as a whole.

    Raises:
        VaultFormatError: It is cut off.
        SecretsLockedError: No password opens it.
    """
    envelope = parse_envelope(_text(source, path), path)
    plain, password = open_envelope(envelope, keyring, path)
    return OpenedVault(path=path, source=source, plain=plain, password=password)


def seal_whole(plain: bytes, keyring: Keyring, label: str | None = None) -> bytes:
    """Encrypt a file as a whole.

    Raises:
        SecretsLockedError: There is no password to do so.
    """
    password = encryption_password(keyring, label)
    return seal(plain, password.password, label or password.label).encode()


@dataclass(frozen=True, slots=True)
class _EncryptedValue:
    """A value that is encrypted in a file: its text there, and what opens it."""

    token: str
    password: VaultPassword
    label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedInlineVault:
    """YAML with encrypted values."""

    path: str
    source: bytes
    plain: bytes = field(repr=False)
    warnings: tuple[str, ...] = ()
    _encrypted: Layout
    _values: Mapping[int, Scalar] = field(repr=False)
    _known: Mapping[tuple[tuple[str | int, ...], str], _EncryptedValue] = field(repr=False)
    _first: _EncryptedValue = field(repr=False)

    @property
    def kind(self) -> SecretsKind:
        """How it is protected."""
        return SecretsKind.VAULT_INLINE

    def secrets(self) -> frozenset[str]:
        """Return every value that was encrypted."""
        return secret_texts(self._values.values())

    def layout(self) -> Layout | None:
        """Return all values with their places in the file."""
        return replace_leaves(self._encrypted, self._values)

    def check(self, plain: bytes) -> None:
        """Refuse what is no YAML."""
        parse_yaml(_text(plain, self.path), self.path)

    def seal(self, plain: bytes) -> bytes:
        """Encrypt the values with a tag that changed; those that did not keep their text."""
        if plain == self.plain:
            return self.source
        text = _text(plain, self.path)
        first = self._first

        def token(keys: tuple[str | int, ...], value: str) -> str:
            known = self._known.get((keys, value)) or self._find_moved(value)
            return known.token if known else seal(value.encode(), first.password.password, first.label)

        return _with_tokens(text, self.path, token).encode()

    def _find_moved(self, value: str) -> _EncryptedValue | None:
        return next((sealed for (_, known), sealed in self._known.items() if known == value), None)

    def rekey(self, password: VaultPassword) -> bytes:
        """Encrypt every value with another password."""
        text = _text(self.plain, self.path)
        return _with_tokens(
            text, self.path, lambda _, value: seal(value.encode(), password.password, password.label)
        ).encode()


def _list_vault_leaves(layout: Layout) -> list[tuple[tuple[str | int, ...], Leaf]]:
    return [
        ((number, *keys), leaf)
        for number, document in enumerate(layout.documents)
        for keys, leaf in leaves(document.root)
        if leaf.tag in _TAGS
    ]


def open_inline_vault(source: bytes, path: str, keyring: Keyring) -> OpenedInlineVault:
    """Decrypt the `!vault` values of a YAML file.

    Raises:
        VaultFormatError: One of them is cut off, or in clear.
        SecretsLockedError: No password opens one of them.
        SecretsSyntaxError: It is no YAML.
    """
    layout = parse_yaml(_text(source, path), path)
    values: dict[int, Scalar] = {}
    known: dict[tuple[tuple[str | int, ...], str], _EncryptedValue] = {}
    splices = []
    for keys, leaf in _list_vault_leaves(layout):
        where = leaf.place.location(path)
        named = f"The value in line {leaf.place.line} of {path}"
        if not is_vault(str(leaf.value)):
            raise VaultFormatError(f"{named} is tagged {TAG} and is in clear.", where=where)
        envelope = parse_envelope(str(leaf.value), named)
        opened, password = open_envelope(envelope, keyring, named)
        value = _text(opened, path)
        values[leaf.start] = value
        known[keys, value] = _EncryptedValue(str(leaf.value), password, envelope.label)
        splices.append(Splice(leaf.start, leaf.end, f"{TAG} {_format_decrypted(value, leaf, layout.text)}"))
    return OpenedInlineVault(
        path=path,
        source=source,
        plain=apply_splices(layout.text, splices).encode(),
        _encrypted=layout,
        _values=values,
        _known=known,
        _first=next(iter(known.values())),
    )


def _format_decrypted(value: str, leaf: Leaf, text: str) -> str:
    """Write a decrypted value so that it stays text, whatever it looks like."""
    return yaml_scalar(value, indent=leaf.indent, is_flow=is_one_line(leaf, text))


Tokens = Callable[[tuple[str | int, ...], str], str]


def _with_tokens(text: str, path: str, token: Tokens) -> str:
    """Put the encrypted form in the place of every tagged value that is in clear."""
    splices = []
    for keys, leaf in _list_vault_leaves(parse_yaml(text, path)):
        value = leaf.value
        if isinstance(value, str) and not is_vault(value):
            splices.append(Splice(leaf.start, leaf.end, _block(token(keys, value), leaf, text)))
    return apply_splices(text, splices)


def _block(token: str, leaf: Leaf, text: str) -> str:
    """Write an encrypted value as Ansible does: a literal, or on one line between brackets."""
    lines = token.split()
    if is_one_line(leaf, text):
        inside = "\\n".join(lines)
        return f'{TAG} "{inside}\\n"'
    space = " " * (leaf.indent + _INDENT)
    return "\n".join([f"{TAG} |", *(space + line for line in lines)])


def seal_inline(plain: bytes, path: str, keyring: Keyring, label: str | None = None) -> bytes:
    """Encrypt the values of a YAML file that are tagged `!vault` and in clear.

    Raises:
        SecretsSyntaxError: It is no YAML, or no value is tagged.
        SecretsLockedError: There is no password to do so.
    """
    text = _text(plain, path)
    if not _list_vault_leaves(parse_yaml(text, path)):
        raise SecretsSyntaxError(
            f"{path} has no value with the tag {TAG}, which says what to encrypt.",
            where=Location(path),
            remedy=f"Write `key: {TAG} value` for each value to encrypt.",
        )
    password = encryption_password(keyring, label)
    return _with_tokens(
        text, path, lambda _, value: seal(value.encode(), password.password, label or password.label)
    ).encode()


def without_tags(plain: bytes, path: str) -> bytes:
    """Return the plain text with the tags taken off, as YAML that any program reads."""
    text = _text(plain, path)
    splices = [
        Splice(leaf.start, leaf.end, _format_decrypted(str(leaf.value), leaf, text))
        for _, leaf in _list_vault_leaves(parse_yaml(text, path))
    ]
    return apply_splices(text, splices).encode()
