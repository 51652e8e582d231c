"""Encryption at rest: a store whose objects are unreadable without the key, around any other store.

Each object has a key of its own, derived from the master key, a random salt and the object's name, so that no
nonce ever repeats and no object can replaces another. The names stay readable. Objects say which master
key they need: with a new key first in the ring and the old ones behind it, everything stays readable while
`reseal` writes it again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects.base import (
    ConflictError,
    Expect,
    ListedObject,
    Objects,
    RepeatableObjects,
    Stored,
    StoreDamagedError,
    Tag,
)
from stackyard.clients.objects.watch import watch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from stackyard.clients.objects.watch import Watch

__all__ = [
    "KeyMissingError",
    "KeyRing",
    "MasterKey",
    "MasterKeyError",
    "SealedObjects",
    "is_sealed",
    "make_master_key",
    "reseal",
]

_MAGIC = b"SYE1"
_ID_BYTES = 8
_SALT_BYTES = 32
_KEY_BYTES = 32
_NONCE_BYTES = 12
_HEAD_BYTES = len(_MAGIC) + _ID_BYTES + _SALT_BYTES


class MasterKeyError(InvalidInputError):
    """A key for encryption at rest is not 32 bytes in base64 or hexadecimal digits."""

    code = "E-STORE-KEY"
    summary = "A key for the encryption of the store cannot be used"
    default_remedy = "Give 32 random bytes in base64, such as `openssl rand -base64 32` prints."


class KeyMissingError(StoreDamagedError):
    """An object is encrypted with a key that was not given, or is not encrypted although it should be."""

    code = "E-STORE-KEY-MISSING"
    summary = "The key that an object was encrypted with is not known"
    default_remedy = "Give the key that the store was written with beside the new one."


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A key of 32 bytes; its id is a part of its own hash, which reveals nothing about it."""

    secret: bytes = field(repr=False)

    @classmethod
    def from_text(cls, text: str) -> MasterKey:
        """Read a key as it is in a file or variable: base64 or hexadecimal digits.

        Raises:
            MasterKeyError: It is something else.
        """
        stripped = text.strip()
        try:
            secret = (
                bytes.fromhex(stripped)
                if len(stripped) == 2 * _KEY_BYTES
                else base64.b64decode(stripped, validate=True)
            )
        except (ValueError, binascii.Error) as err:
            raise MasterKeyError("The key is neither base64 nor hexadecimal digits.") from err
        if len(secret) != _KEY_BYTES:
            raise MasterKeyError(f"The key has {len(secret)} bytes, not {_KEY_BYTES}.")
        return cls(secret)

    @property
    def id(self) -> str:
        """What objects call it by."""
        return hashlib.sha256(b"stackyard key id" + self.secret).hexdigest()[: 2 * _ID_BYTES]


def make_master_key() -> str:
    """Return a new key as text."""
    return base64.b64encode(os.urandom(_KEY_BYTES)).decode()


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a store: the first encrypts, all decrypt."""

    keys: tuple[MasterKey, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise MasterKeyError("There is no key to encrypt with.")

    @classmethod
    def from_text(cls, text: str) -> KeyRing:
        """Read keys separated by commas or line breaks, the one to encrypt with first."""
        words = text.replace(",", "\n").split("\n")
        return cls(tuple(MasterKey.from_text(word) for word in words if word.strip()))

    def find(self, key_id: str) -> MasterKey:
        """Return the key of this id.

        Raises:
            KeyMissingError: It is not in the ring.
        """
        for key in self.keys:
            if key.id == key_id:
                return key
        raise KeyMissingError(
            f"The key {key_id} is needed; known are {', '.join(key.id for key in self.keys)}."
        )


class SealedObjects:
    """A store around another one, with every object encrypted.

    Args:
        inner: Where the encrypted objects are.
        ring: The keys.
    """

    def __init__(self, inner: Objects, ring: KeyRing) -> None:
        self._inner = inner
        self._ring = ring

    @property
    def key_id(self) -> str:
        """The key that is written with."""
        return self._ring.keys[0].id

    @property
    def has_old_keys(self) -> bool:
        """Whether there are keys that are only read with."""
        return len(self._ring.keys) > 1

    def use(self, ring: KeyRing) -> None:
        """Use other keys from now on."""
        self._ring = ring

    def get(self, key: str) -> Stored | None:
        """Return an object, decrypted."""
        found = self._inner.get(key)
        return None if found is None else Stored(data=self._open(key, found.data), tag=found.tag)

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object, encrypted."""
        others = {other: self._seal(other, body) for other, body in (before or {}).items()}
        return self._inner.put(key, self._seal(key, data), expect=expect, before=others)

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object, encrypted, unless this write was done before."""
        others = {other: self._seal(other, body) for other, body in (before or {}).items()}
        sealed = self._seal(key, data)
        if not isinstance(self._inner, RepeatableObjects):
            return self._inner.put(key, sealed, expect=expect, before=others)
        return self._inner.put_once(key, sealed, expect=expect, write_id=write_id, before=others)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._inner.delete(key)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects, with the sizes that they have encrypted."""
        return self._inner.list(prefix, after=after, limit=limit)

    def watch(self, prefix: str) -> AbstractContextManager[Watch]:
        """Watch the store inside: names are not encrypted."""
        return watch(self._inner, prefix)

    def close(self) -> None:
        """Close the store inside."""
        self._inner.close()

    def reseal(self, key: str) -> bool:
        """Write an object with the first key if it has another; return whether it had."""
        found = self._inner.get(key)
        if found is None or _key_id(key, found.data) == self._ring.keys[0].id:
            return False
        data = self._open(key, found.data)
        try:
            self._inner.put(key, self._seal(key, data), expect=found.tag)
        except ConflictError:
            # Anyone who wrote it in between wrote it with the first key.
            return False
        return True

    def _seal(self, key: str, data: bytes) -> bytes:
        master = self._ring.keys[0]
        salt = os.urandom(_SALT_BYTES)
        secret, nonce = _derive(master, salt, key)
        head = _MAGIC + bytes.fromhex(master.id) + salt
        return head + AESGCM(secret).encrypt(nonce, data, head)

    def _open(self, key: str, sealed: bytes) -> bytes:
        master = self._ring.find(_key_id(key, sealed))
        head, body = sealed[:_HEAD_BYTES], sealed[_HEAD_BYTES:]
        secret, nonce = _derive(master, head[-_SALT_BYTES:], key)
        try:
            return AESGCM(secret).decrypt(nonce, body, head)
        except InvalidTag as err:
            raise StoreDamagedError(f"{key} was changed outside of stackyard: its seal is broken.") from err


def reseal(objects: SealedObjects, *, page: int = 500) -> int:
    """Write every object with the first key, while the store is in use; return how many had another."""
    count, after = 0, ""
    while entries := objects.list("", after=after, limit=page):
        count += sum(objects.reseal(entry.key) for entry in entries)
        after = entries[-1].key
    return count


def is_sealed(data: bytes) -> bool:
    """Return whether an object was sealed by `SealedObjects`."""
    return data.startswith(_MAGIC) and len(data) >= _HEAD_BYTES


def _key_id(key: str, sealed: bytes) -> str:
    if not is_sealed(sealed):
        raise KeyMissingError(
            f"{key} is not encrypted, although a key was given.",
            remedy="Start without a key, or move the states to a new store that has one.",
        )
    return sealed[len(_MAGIC) : len(_MAGIC) + _ID_BYTES].hex()


def _derive(master: MasterKey, salt: bytes, key: str) -> tuple[bytes, bytes]:
    kdf = HKDF(algorithm=hashes.SHA256(), length=_KEY_BYTES + _NONCE_BYTES, salt=salt, info=key.encode())
    derived = kdf.derive(master.secret)
    return derived[:_KEY_BYTES], derived[_KEY_BYTES:]
