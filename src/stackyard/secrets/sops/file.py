"""A SOPS file: opened with the user's keys, sealed again, made new, and given other keys."""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.base import SecretsKind, secret_texts
from stackyard.secrets.layout import Comment, Layout, Leaf, SecretsSyntaxError, Splice, apply_splices, leaves
from stackyard.secrets.sops.cipher import CipherError, DataCipher, looks_encrypted
from stackyard.secrets.sops.datakey import data_key, wrap_groups
from stackyard.secrets.sops.expand import replace_leaves, without_aliases
from stackyard.secrets.sops.metadata import (
    Metadata,
    SopsMetadataError,
    metadata_document,
    now_text,
    read_metadata,
)
from stackyard.secrets.sops.text import FileFormat, TextFormat, text_format
from stackyard.secrets.sops.tree import Mac, TreeEntry, context_of, walk_tree
from stackyard.secrets.values import Scalar, to_bytes, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.sops.config import CreationRule

__all__ = ["OpenedSops", "SopsDamagedError", "open_sops", "seal_new"]


# A comment in a list, which SOPS encrypts to an item of the list.
_ITEM = "comment-item"
_LARGEST_EXACT = 2**63


class SopsDamagedError(InvalidInputError):
    """A SOPS file was changed without SOPS: a value, its place, or the set of values is another."""

    code = "E-SOPS-DAMAGED"
    summary = "A SOPS file was changed by something else than SOPS"
    default_remedy = "Restore the file from version control, and change it with `stackyard secrets edit`."


@dataclass(frozen=True, slots=True)
class _KnownTokens:
    """The tokens of values that are already encrypted, by what they are bound to, type and bytes."""

    tokens: dict[tuple[str, str, bytes], str] = field(default_factory=dict)

    def add(self, context: str, kind: str, value: Scalar, token: str) -> None:
        self.tokens[context, kind, to_bytes(value)] = token

    def get(self, context: str, kind: str, value: Scalar) -> str | None:
        return self.tokens.get((context, kind, to_bytes(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSops:
    """A SOPS file that was decrypted and found to be whole."""

    path: str
    source: bytes
    format: FileFormat
    metadata: Metadata
    warnings: tuple[str, ...]
    _text: TextFormat
    _encrypted: Layout
    _key: bytes = field(repr=False)
    _values: Mapping[int, Scalar] = field(repr=False)
    _comments: frozenset[int]
    _known: _KnownTokens = field(repr=False)
    _mac: str = field(repr=False)
    _opening: _FileDecryption = field(repr=False)

    @property
    def plain(self) -> bytes:
        """The decrypted file; made again each time, because anyone who wants values needs none of it."""
        if self.format is FileFormat.BINARY:
            return _content(self._encrypted, self._opening)
        return self._opening.plain(self._encrypted)

    @property
    def kind(self) -> SecretsKind:
        """How it is protected."""
        return SecretsKind.SOPS

    def secrets(self) -> frozenset[str]:
        """Return every value that was encrypted."""
        return secret_texts(self._values.values())

    def layout(self) -> Layout | None:
        """Return the decrypted values with the places where their encrypted forms stand."""
        if self.format is FileFormat.BINARY:
            return None
        bare = self._text.without_metadata(self._encrypted)
        return replace_leaves(bare, self._values, left_out=self._comments)

    def check(self, plain: bytes) -> None:
        """Refuse plain text that could not be sealed."""
        _parse_plain(plain, self.format, self._text, self.path)

    def seal(self, plain: bytes) -> bytes:
        """Encrypt changed plain text with the same data key."""
        if plain == self.plain:
            return self.source
        layout = _parse_plain(plain, self.format, self._text, self.path)
        cipher = DataCipher(self._key)
        splices, mac = _seal(layout, self.metadata, cipher, self._known, self._text)
        changes: dict[str, str] = {}
        if mac != self._mac:
            changes["lastmodified"] = now_text()
            changes["mac"] = cipher.seal(mac, changes["lastmodified"])
        splices += self._text.carry_metadata(self._encrypted, layout, changes)
        return apply_splices(layout.text, splices).encode()

    def rekey(self, groups: Sequence[Sequence[str]]) -> bytes:
        """Encrypt everything with a new data key.

        Args:
            groups: The age recipients of each key group.
        """
        layout = _parse_plain(self.plain, self.format, self._text, self.path)
        settings = dataclasses.replace(self.metadata, threshold=min(self.metadata.threshold, len(groups)))
        return _seal_all(layout, settings, groups, self._text)


def open_sops(source: bytes, path: str, keyring: Keyring, format: FileFormat) -> OpenedSops:
    """Decrypt a SOPS file and verify its MAC.

    Args:
        source: The file.
        path: Its name, for errors.
        keyring: The keys of the user.
        format: What is inside.

    Raises:
        SecretsLockedError: None of the keys opens it.
        SopsDamagedError: It was changed by something else than SOPS.
        SopsMetadataError: Its `sops` part is missing or not valid.
        SecretsSyntaxError: It is not in this format.
    """
    text = text_format(format)
    encrypted = text.parse(_decode(source, path), path)
    found = text.metadata(encrypted)
    where = text.metadata_place(encrypted, path)
    if found is None:
        raise SopsMetadataError(
            f"{path} has encrypted values and no `sops` part: it is cut off.", where=where
        )
    metadata = read_metadata(found, where)
    key = data_key(metadata, keyring, where)
    opening = _FileDecryption(path, metadata, key, format)
    opening.take(text.without_metadata(encrypted))
    opening.verify(where)
    return OpenedSops(
        path=path,
        source=source,
        format=format,
        metadata=metadata,
        warnings=tuple(opening.warnings),
        _text=text,
        _encrypted=encrypted,
        _key=key,
        _values=opening.values,
        _comments=frozenset(opening.comments),
        _known=opening.known,
        _mac=opening.mac.text(),
        _opening=opening,
    )


def _decode(source: bytes, path: str) -> str:
    try:
        return source.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as err:
        line = source.count(b"\n", 0, err.start) + 1
        raise SecretsSyntaxError(f"{path} is not UTF-8 text.", where=Location(path, line)) from err


def _content(encrypted: Layout, opening: _FileDecryption) -> bytes:
    """Return the content of a binary file."""
    entry = next((one for one in encrypted.documents[0].root.entries if one.key == "data"), None)
    if entry is None or not isinstance(entry.node, Leaf):
        raise SopsMetadataError(f"{opening.path} wraps no data.", where=Location(opening.path))
    return to_bytes(opening.values.get(entry.node.start, entry.node.value))


class _FileDecryption:
    """Decrypts the values of a file one by one, and sums them up for the MAC."""

    def __init__(self, path: str, metadata: Metadata, key: bytes, format: FileFormat) -> None:
        self.path = path
        self.values: dict[int, Scalar] = {}
        self.comments: set[int] = set()
        self.known = _KnownTokens()
        self.splices: list[Splice] = []
        self.leaves: list[tuple[Leaf, Scalar]] = []
        self.warnings: list[str] = []
        self.mac = Mac(is_only_encrypted=metadata.is_mac_only_encrypted)
        self._metadata = metadata
        self._cipher = DataCipher(key)
        self._text = text_format(format)

    def take(self, layout: Layout) -> None:
        for visit in walk_tree(layout, self._metadata.rule):
            if isinstance(visit.thing, Comment):
                self._take_remark(visit.thing)
            else:
                self._take_leaf(visit.thing, visit)

    def _take_leaf(self, leaf: Leaf, visit: TreeEntry) -> None:
        value = leaf.value
        if visit.is_encrypted and value is not None and value != "":
            context = context_of(visit.path)
            value, kind = self._decrypt_leaf(leaf, context)
            if kind == "comment":
                self._take_item_comment(leaf, visit, str(value))
                return
            self.values[leaf.start] = value
            self.known.add(context, kind, value, str(leaf.value))
            self.leaves.append((leaf, value))
        elif looks_encrypted(value) and not visit.is_encrypted:
            raise self._make_damaged_error(
                "it is encrypted where the rules of the file say that it is not", leaf
            )
        self.mac.add(value, is_encrypted=visit.is_encrypted)

    def _take_item_comment(self, leaf: Leaf, visit: TreeEntry, comment: str) -> None:
        """Turn an item of a list back into the comment that SOPS made it of; the MAC leaves it out."""
        if visit.item_start is None or leaf.is_flow or "\n" in comment:
            raise self._make_damaged_error("a comment was put in the place of a value", leaf)
        self.comments.add(leaf.start)
        self.known.add(context_of(visit.path), _ITEM, comment, str(leaf.value))
        self.splices.append(Splice(visit.item_start, leaf.end, f"#{comment}"))

    def _decrypt_leaf(self, leaf: Leaf, context: str) -> tuple[Scalar, str]:
        if not isinstance(leaf.value, str):
            raise self._make_damaged_error(
                "it is in clear where the rules of the file say that it is encrypted", leaf
            )
        try:
            return self._cipher.open(leaf.value, context)
        except CipherError as err:
            raise self._make_damaged_error(str(err), leaf) from err

    def _make_damaged_error(self, why: str, leaf: Leaf) -> SopsDamagedError:
        return SopsDamagedError(
            f"The value in line {leaf.place.line} of {self.path} cannot be trusted: {why}.",
            where=leaf.place.location(self.path),
        )

    def _take_remark(self, remark: Comment) -> None:
        if not looks_encrypted(remark.text):
            return
        for path in remark.guesses:
            try:
                value, _ = self._cipher.open(remark.text, context_of(path))
            except CipherError:
                continue
            self.known.add(context_of(path), "comment", value, remark.text)
            self.values[remark.start] = value
            self.splices.append(Splice(remark.start + 1, remark.end, str(value)))
            return
        self.warnings.append(
            f"The comment in line {remark.place.line} of {self.path} was moved or changed: it stays as it is."
        )

    def plain(self, encrypted: Layout) -> bytes:
        text = encrypted.text
        splices = [
            Splice(leaf.start, leaf.end, self._text.scalar(value, leaf, text)) for leaf, value in self.leaves
        ]
        return apply_splices(text, [*splices, *self.splices, *self._text.drop_metadata(encrypted)]).encode()

    def verify(self, where: Location) -> None:
        try:
            expected, _ = self._cipher.open(self._metadata.mac, self._metadata.mac_context)
        except CipherError as err:
            raise SopsDamagedError(f"The MAC of {self.path} cannot be trusted: {err}.", where=where) from err
        if not hmac.compare_digest(str(expected).encode(), self.mac.text().encode()):
            raise SopsDamagedError(
                f"The MAC of {self.path} does not fit its values: one was added, removed, moved or changed.",
                where=where,
            )


def _parse_plain(plain: bytes, format: FileFormat, text: TextFormat, path: str) -> Layout:
    """Read plain text that is to be encrypted."""
    if format is FileFormat.BINARY:
        return _wrap_binary(plain)
    layout = without_aliases(text.parse(_decode(plain, path), path), text, path)
    if text.metadata(layout) is not None or text.drop_metadata(layout):
        raise SecretsSyntaxError(
            f"{path} has a `sops` part in its plain text, where only its encrypted form has one.",
            where=text.metadata_place(layout, path),
        )
    return layout


def _wrap_binary(plain: bytes) -> Layout:
    """Return the wrapping of a binary file, with its content as the one value."""
    layout = text_format(FileFormat.BINARY).parse('{\n\t"data": ""\n}\n', "")
    content: Scalar = plain
    with contextlib.suppress(UnicodeDecodeError):
        content = plain.decode()
    ((_, leaf),) = leaves(layout.documents[0].root)
    return replace_leaves(layout, {leaf.start: content})


def _seal(
    layout: Layout, metadata: Metadata, cipher: DataCipher, known: _KnownTokens, text: TextFormat
) -> tuple[list[Splice], str]:
    """Return what encrypts a text, and the MAC over its values."""
    splices = []
    mac = Mac(is_only_encrypted=metadata.is_mac_only_encrypted)
    for visit in walk_tree(layout, metadata.rule):
        thing, context = visit.thing, context_of(visit.path)
        if isinstance(thing, Comment):
            if visit.is_encrypted:
                splices += _seal_comment(thing, visit, cipher, known)
            continue
        mac.add(thing.value, is_encrypted=visit.is_encrypted)
        if visit.is_encrypted and thing.value is not None and to_bytes(thing.value) != b"":
            _refuse_inexact(thing, layout.text)
            kind = type_name(thing.value)
            token = known.get(context, kind, thing.value) or cipher.seal(thing.value, context)
            splices.append(Splice(thing.start, thing.end, text.token(token, thing)))
    return splices, mac.text()


def _refuse_inexact(leaf: Leaf, text: str) -> None:
    """Refuse a whole number that is too large for SOPS, which would round it."""
    is_whole = text[leaf.start : leaf.end].lstrip("-+").isdecimal()
    if isinstance(leaf.value, float) and is_whole and abs(leaf.value) >= _LARGEST_EXACT:
        raise SecretsSyntaxError(
            f"The number in line {leaf.place.line} has more than 64 bits, and SOPS would round it.",
            remedy="Put it in quotes.",
        )


def _seal_comment(remark: Comment, visit: TreeEntry, cipher: DataCipher, known: _KnownTokens) -> list[Splice]:
    if not remark.text or looks_encrypted(remark.text):
        return []
    context = context_of(visit.path)
    item = known.get(context, _ITEM, remark.text) if visit.item_start is not None else None
    if item is not None:
        return [Splice(remark.start, remark.end, f"- {item}")]
    token = known.get(context, "comment", remark.text) or cipher.seal(remark.text, context, is_comment=True)
    return [Splice(remark.start + 1, remark.end, token)]


def seal_new(plain: bytes, path: str, format: FileFormat, rule: CreationRule) -> bytes:
    """Encrypt a file for the first time.

    Raises:
        SecretsSyntaxError: It is not in this format, or is encrypted already.
        RecipientError: It would be encrypted for no one, or for someone who cannot be.
    """
    text = text_format(format, indent=rule.yaml_indent)
    layout = _parse_plain(plain, format, text, path)
    settings = Metadata(
        groups=(),
        threshold=rule.threshold or len(rule.groups),
        rule=rule.rule,
        is_mac_only_encrypted=rule.is_mac_only_encrypted,
    )
    return _seal_all(layout, settings, rule.groups, text)


def _seal_all(layout: Layout, settings: Metadata, groups: Sequence[Sequence[str]], text: TextFormat) -> bytes:
    """Encrypt every value with a new data key."""
    key = os.urandom(32)
    cipher = DataCipher(key)
    splices, mac = _seal(layout, settings, cipher, _KnownTokens(), text)
    at = now_text()
    metadata = dataclasses.replace(
        settings,
        groups=wrap_groups(key, groups, settings.threshold),
        mac=cipher.seal(mac, at),
        last_modified=at,
        version="",
    )
    splices += text.add_metadata(layout, metadata_document(metadata))
    return apply_splices(layout.text, splices).encode()
