"""Telling how a file is protected, and opening it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, Location
from stackyard.secrets.base import OpenedFile, SecretsKind, secret_texts
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.layout import Layout, Leaf, SecretsSyntaxError, leaves
from stackyard.secrets.sops.cipher import looks_encrypted
from stackyard.secrets.sops.file import open_sops
from stackyard.secrets.sops.metadata import SopsMetadataError
from stackyard.secrets.sops.rules import DEFAULT_RULE
from stackyard.secrets.sops.text import FileFormat, format_of_name, text_format
from stackyard.secrets.sops.tree import walk_tree
from stackyard.secrets.vault.marker import is_vault

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.secrets.keyring import Keyring

__all__ = ["OpenedPlain", "Protection", "detect", "open_bytes", "open_file", "read_bytes"]

_USUAL_START = "\nsops:\n"
_USUAL_KEY = re.compile(r"^ +(?:mac|lastmodified):", re.MULTILINE)
_MAYBE_INLINE = re.compile(rb"!vault(?:-encrypted)?\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """How a file is protected, and what is inside."""

    kind: SecretsKind
    format: FileFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPlain:
    """A file that is not encrypted."""

    path: str
    plain: bytes = field(repr=False)
    format: FileFormat
    warnings: tuple[str, ...] = ()

    @property
    def kind(self) -> SecretsKind:
        """How it is protected: not."""
        return SecretsKind.PLAIN

    def secrets(self) -> frozenset[str]:
        """Return every value."""
        layout = self.layout()
        if layout is None:
            return frozenset()
        return secret_texts(leaf.value for one in layout.documents for _, leaf in leaves(one.root))

    def layout(self) -> Layout | None:
        """Return the values with their places."""
        if self.format is FileFormat.BINARY:
            return None
        try:
            text = self.plain.decode().removeprefix("\ufeff")
        except UnicodeDecodeError as err:
            line = self.plain.count(b"\n", 0, err.start) + 1
            raise SecretsSyntaxError(
                f"{self.path} is not UTF-8 text.", where=Location(self.path, line)
            ) from err
        return text_format(self.format).parse(text, self.path)

    def check(self, plain: bytes) -> None:
        """Refuse what can no longer be read."""
        OpenedPlain(path=self.path, plain=plain, format=self.format).layout()

    def seal(self, plain: bytes) -> bytes:
        """Return the plain text, which stays what it is."""
        self.check(plain)
        return plain


def read_bytes(path: Path) -> bytes:
    """Return a file as it is.

    Raises:
        FileError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "read", path) from err


def detect(data: bytes, name: str) -> Protection:
    """Tell how a file is protected, from its content; the name only says what is inside.

    Raises:
        SecretsSyntaxError: It has to be read to tell, and cannot be.
        SopsMetadataError: It has values of SOPS, and no `sops` part.
    """
    named = format_of_name(name)
    text = data.decode(errors="replace").removeprefix("\ufeff")
    if is_vault(text[:200]):
        return Protection(kind=SecretsKind.VAULT, format=named)
    for format in _candidates(text, named):
        if _is_sops(text, format, name):
            return Protection(kind=SecretsKind.SOPS, format=format)
    if b"ENC[AES256_GCM," in data and named is not FileFormat.BINARY:
        _refuse_torn(text, named, name)
    if named is FileFormat.YAML and _MAYBE_INLINE.search(data) and _has_inline(text, name):
        return Protection(kind=SecretsKind.VAULT_INLINE, format=named)
    return Protection(kind=SecretsKind.PLAIN, format=named)


def _candidates(text: str, named: FileFormat) -> Sequence[FileFormat]:
    """Return the formats that a SOPS file may be in; where the name says nothing, all that fit the text."""
    if named is not FileFormat.BINARY:
        return (named,) if "sops" in text else ()
    if text.lstrip().startswith("{"):
        return (FileFormat.BINARY, FileFormat.JSON)
    if "\nsops_mac=" in text:
        return (FileFormat.DOTENV,)
    return (FileFormat.YAML,) if "\nsops:" in text else ()


def _is_sops(text: str, format: FileFormat, name: str) -> bool:
    usual = text.find(_USUAL_START) if format is FileFormat.YAML else -1
    if usual >= 0 and _USUAL_KEY.search(text, usual):
        # As SOPS writes it: no need to read the file twice.
        return True
    try:
        form = text_format(format)
        layout = form.parse(text, name)
    except SecretsSyntaxError:
        if "ENC[AES256_GCM," in text:
            raise
        return False
    found = form.metadata(layout)
    keys = {entry.key for entry in layout.documents[0].root.entries} if layout.documents else set()
    if format is FileFormat.BINARY and keys != {"data", "sops"}:
        return False
    return found is not None and bool({"mac", "lastmodified", "age", "key_groups", "pgp", "kms"} & set(found))


def _refuse_torn(text: str, format: FileFormat, name: str) -> None:
    """Refuse a file with encrypted values and without a `sops` part: half of it is missing."""
    for visit in walk_tree(text_format(format).parse(text, name), DEFAULT_RULE):
        thing = visit.thing
        if looks_encrypted(thing.value if isinstance(thing, Leaf) else thing.text):
            raise SopsMetadataError(
                f"{name} has encrypted values and no `sops` part: it is cut off.",
                where=thing.place.location(name),
            )


def _has_inline(text: str, name: str) -> bool:
    layout = parse_yaml(text, name)
    found = (leaf for one in layout.documents for _, leaf in leaves(one.root) if leaf.tag is not None)
    return any(leaf.tag in ("!vault", "!vault-encrypted") and is_vault(str(leaf.value)) for leaf in found)


def open_bytes(data: bytes, name: str, keyring: Keyring) -> OpenedFile:
    """Open a file that was read already.

    Raises:
        SecretsLockedError: It is encrypted, and not for the keys of the user.
        InvalidInputError: It is not what it should be; the errors of each sort say more.
    """
    found = detect(data, name)
    if found.kind is SecretsKind.SOPS:
        return open_sops(data, name, keyring, found.format)
    if found.kind is SecretsKind.VAULT:
        from stackyard.secrets.vault.file import open_vault  # lazy: only for files of Ansible Vault

        return open_vault(data, name, keyring)
    if found.kind is SecretsKind.VAULT_INLINE:
        from stackyard.secrets.vault.file import open_inline_vault  # lazy: as above

        return open_inline_vault(data, name, keyring)
    return OpenedPlain(path=name, plain=data, format=found.format)


def open_file(path: Path, keyring: Keyring) -> OpenedFile:
    """Open a file, whatever protects it.

    Raises:
        FileError: It cannot be read.
        SecretsLockedError: It is encrypted, and not for the keys of the user.
        InvalidInputError: It is not what it should be; the errors of each sort say more.
    """
    return open_bytes(read_bytes(path), str(path), keyring)
