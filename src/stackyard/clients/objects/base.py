"""The seam: whole objects under a name, each replaced by compare-and-set.

A store keeps bytes under a key and gives each content a `Tag`. A writer says what it expects to replace:
nothing (`ABSENT`), exactly what it read (its tag), or whatever is there (`ANYTHING`). Of two writers that
expect the same, one wins and the other gets a `ConflictError`. When a call returns, the write is durable.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NewType, Protocol, runtime_checkable

from stackyard.base.errors import BusyError, InvalidInputError, StackyardError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

__all__ = [
    "ABSENT",
    "ANYTHING",
    "ConflictError",
    "Expect",
    "KeyFormError",
    "ListedObject",
    "Objects",
    "RepeatableObjects",
    "StoreAbsentError",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreDeniedError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreUnsafeError",
    "Stored",
    "Tag",
    "check_key",
    "check_write_id",
]

Tag = NewType("Tag", str)


class Expectation(enum.Enum):
    """What a writer may expect beside a content that it has read."""

    ABSENT = "absent"
    ANYTHING = "anything"


ABSENT: Final = Expectation.ABSENT
ANYTHING: Final = Expectation.ANYTHING
Expect: TypeAlias = "Tag | Literal[Expectation.ABSENT, Expectation.ANYTHING]"

# What every store takes alike. `!` is left to callers that need a separator which no name contains.
_KEY = re.compile(r"[A-Za-z0-9._@:+=,~!-]+(/[A-Za-z0-9._@:+=,~!-]+)*")
_LONGEST_KEY_BYTES = 800
_WRITE_ID = re.compile(r"[A-Za-z0-9-]{16,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object as it was read: its bytes, and the tag to expect when it is replaced."""

    data: bytes
    tag: Tag

    def __repr__(self) -> str:
        return f"Stored({len(self.data)} bytes, tag={self.tag!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    """An object in a list.

    Attributes:
        key: Its name.
        size: How many bytes the store keeps for it.
        modified_at: When it was written, in seconds since 1970 by the clock of the store.
    """

    key: str
    size: int
    modified_at: float


class StoreError(UnreachableError):
    """The object store cannot be reached, or failed. It may or may not have done the work."""

    code = "E-STORE"
    summary = "The object store cannot be used"
    default_remedy = "Check that the store is up and that you may use it, then run the command again."


class StoreAbsentError(StoreError):
    """The store can be reached, but nothing was ever stored in it."""

    code = "E-STORE-ABSENT"
    summary = "There is no object store"
    default_remedy = "Check the address. The first run that writes creates the store."


class StoreBusyError(BusyError):
    """Other processes kept the store busy for longer than we wait."""

    code = "E-STORE-BUSY"
    summary = "The object store is busy"
    default_remedy = "Wait for the other processes to end, then run the command again."


class StoreFullError(StoreError):
    """The disk or quota of the store is full; what was stored before is untouched."""

    code = "E-STORE-FULL"
    summary = "The object store is full"
    default_remedy = "Free some space for the store, then run the command again; nothing was lost."


class StoreReadOnlyError(StoreError):
    """The store can be read but not written."""

    code = "E-STORE-READ-ONLY"
    summary = "The object store cannot be written"
    default_remedy = (
        "Get write permission for the store. If it is a file, check that its disk is mounted writable."
    )


class StoreDeniedError(StoreError):
    """The credentials are unknown to the store, or do not allow reading."""

    code = "E-STORE-DENIED"
    summary = "The object store cannot be read"
    default_remedy = "Check the credentials, and that they allow to read and list the named objects."


class StoreDamagedError(StoreError):
    """What the store holds is damaged, is no store, or was written by a newer stackyard."""

    code = "E-STORE-DAMAGED"
    summary = "The object store holds something that cannot be read"
    default_remedy = "Restore the store from a backup; nothing was written to it."


class StoreUnsafeError(StackyardError):
    """The store ignores the conditions of writes, so that two writers could overwrite each other."""

    code = "E-STORE-UNSAFE"
    summary = "The object store does not support conditional writes"
    default_remedy = (
        "Use a store that does: AWS S3, SeaweedFS, MinIO, Cloudflare R2, PostgreSQL,"
        " or the local SQLite store."
    )


class ConflictError(BusyError):
    """Someone else wrote the object in between, so that what the writer expected is no longer there.

    Args:
        key: The object.
    """

    code = "E-OBJECT-CONFLICT"
    summary = "Another client has written the same object"
    default_remedy = "Read it again and decide again."

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is no longer what it was when it was read.")
        self.key = key


class KeyFormError(InvalidInputError):
    """An object was given a name that not every store can keep."""

    code = "E-OBJECT-KEY"
    summary = "The name of an object is not usable"
    default_remedy = "Use letters, digits and ._@:+=,~!- in parts separated by single slashes."


class Objects(Protocol):
    """A store of whole objects. Every implementation may be used by many threads and processes at once.

    Every method raises `StoreError` when the store cannot be used. After a write that raised it, the object
    is either what it was or what was to be written, never something else; reading it shows which.
    """

    def get(self, key: str) -> Stored | None:
        """Return an object, or None if there is none, which only a store that works ever says."""

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object and return its new tag.

        Two different contents never have the same tag; equal contents may.

        Args:
            key: The object.
            data: All of its bytes.
            expect: What it is to replace.
            before: Other objects, whose names no one else writes, that must be there when this one is. They
                are written first, or together with it, and may be left over when the write is refused.

        Raises:
            ConflictError: The object is not what was expected. Nothing was replaced.
        """

    def delete(self, key: str) -> None:
        """Remove an object, if it is there. Only for objects that no one replaces."""

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects that begin with a prefix and come behind `after`.

        Keys that differ only behind the last slash come in the order of their bytes. SeaweedFS orders folders
        differently from S3, so that nothing more is promised than that going on behind the last key of a list
        gives each object once.
        """

    def close(self) -> None:
        """Let go of connections and files."""


@runtime_checkable
class RepeatableObjects(Protocol):
    """A store that recognises a write which it has done before, so that a caller may send it again."""

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object as `put` does; if this very write was done before, return its tag.

        A write is known by its id for an hour. A store in S3 knows it for as long as the object is not
        replaced, and raises `ConflictError` after that.

        Args:
            key: The object.
            data: All of its bytes.
            expect: What it is to replace.
            write_id: 16 to 64 letters, digits and dashes that no other write has.
            before: Other objects, as in `put`.

        Raises:
            ConflictError: The object is not what was expected, and this write was not done before.
        """


def check_key(key: str) -> str:
    """Return a key that every store takes.

    Raises:
        KeyFormError: It is empty, too long, or holds something that a store may take for something else.
    """
    parts = key.split("/")
    if not _KEY.fullmatch(key) or len(key) > _LONGEST_KEY_BYTES or "." in parts or ".." in parts:
        raise KeyFormError(f"{key[:100]!r} cannot be the name of an object.")
    return key


def check_write_id(write_id: str) -> str:
    """Return the id of a write.

    Raises:
        KeyFormError: It is none.
    """
    if not _WRITE_ID.fullmatch(write_id):
        raise KeyFormError(
            f"{write_id[:100]!r} cannot be the id of a write.",
            remedy="Use 16 to 64 letters, digits and dashes, new for each write.",
        )
    return write_id
