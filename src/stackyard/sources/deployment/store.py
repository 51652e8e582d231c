"""The seam: one object with its versions, written whole and only over what its writer has read.

There are two stores behind it, with the same promises: `EmbeddedStore` keeps the versions in any store of
objects (SQLite beside the state, memory), `BucketStore` keeps plain JSON at a key of a bucket, whose own
versions are the history, so that other programs can read it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import BusyError, InvalidInputError, StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects

__all__ = [
    "FetchedObject",
    "MovedError",
    "ObjectMissingError",
    "Store",
    "UnversionedError",
    "Version",
    "VersionAuthor",
    "VersionUnknownError",
    "choose_version",
    "fingerprint",
]


class ObjectMissingError(InvalidInputError):
    """There is no object where one is expected; that is never read as "nothing should be there"."""

    code = "E-DEPLOYMENT-MISSING"
    summary = "There is no deployment object"
    default_remedy = (
        "Check the store and the key; write a first version with `stackyard deployment put FILE`."
    )


class MovedError(BusyError):
    """Someone else wrote the object after it was read; what was to be written was not.

    Args:
        detail: What happened.
        read: The etag that was read.
        there: The etag that is there now.
    """

    code = "E-DEPLOYMENT-MOVED"
    summary = "Another client changed the deployment object"
    default_remedy = "Read it again; `stackyard deployment edit` makes the same change on what is there now."

    def __init__(self, detail: str, *, read: str = "", there: str = "", remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.read = read
        self.there = there


class VersionUnknownError(InvalidInputError):
    """A version was asked for that the history does not have."""

    code = "E-DEPLOYMENT-VERSION"
    summary = "There is no such version"
    default_remedy = "`stackyard deployment history` shows the versions; `@1` is the one before the current."


class UnversionedError(StackyardError):
    """The bucket keeps no versions, so that a write would lose what it replaces."""

    code = "E-DEPLOYMENT-UNVERSIONED"
    summary = "The bucket of the deployment object keeps no versions"
    default_remedy = (
        "Set the bucket up to keep versions: `aws s3api put-bucket-versioning --bucket BUCKET"
        " --versioning-configuration Status=Enabled`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAuthor:
    """Who writes a version, and what for.

    Attributes:
        by: Who.
        note: What for.
        kind: By which verb.
    """

    by: str = ""
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version.

    Attributes:
        id: What the store calls it.
        etag: What tells its content from others, in the words of the store.
        at: When it was written, in seconds since 1970.
        size: How many bytes it has.
        is_current: Whether it is the newest.
        authored: Who wrote it, as far as the store knows.
    """

    id: str
    etag: str
    at: float
    size: int
    is_current: bool = False
    authored: VersionAuthor = field(default_factory=VersionAuthor)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedObject:
    """An object as it was read just now.

    Attributes:
        data: Its bytes.
        version: Which version it is.
    """

    data: bytes = field(repr=False)
    version: Version

    @property
    def fingerprint(self) -> str:
        """What tells its content from others, in every store alike."""
        return fingerprint(self.data)


class Store(Protocol):
    """One object and its versions. Every method raises `StoreError` when the store cannot be used."""

    @property
    def label(self) -> str:
        """Where the object is, for a person; never a secret."""
        ...

    @property
    def objects(self) -> Objects:
        """Where the lease and the audit of the object are kept."""
        ...

    @property
    def lease_key(self) -> str:
        """The name of its lease there."""
        ...

    def read(self) -> FetchedObject | None:
        """Return the current version, None where there is no object, which only a working store says."""
        ...

    def write(self, data: bytes, *, replaces: Version | None, authored: VersionAuthor) -> Version:
        """Write a new version in place of one that was read, or as the first.

        Raises:
            MovedError: The current version is another.
            UnversionedError: The store would lose what is replaced.
        """
        ...

    def history(self) -> Iterator[Version]:
        """Return the versions, the newest first."""
        ...

    def read_version(self, version: Version) -> FetchedObject:
        """Return an earlier version.

        Raises:
            VersionUnknownError: It is gone.
        """
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...


def fingerprint(data: bytes) -> str:
    """Return what distinguishes a content from all others."""
    return hashlib.sha256(data).hexdigest()


def choose_version(store: Store, said: str) -> Version:
    """Return the version that is named by its id, by the beginning of it, or as `@N`: N before the current.

    Raises:
        VersionUnknownError: There is none, or more than one.
    """
    if said.startswith("@") and said[1:].isdigit():
        wanted = int(said[1:])
        for place, version in enumerate(store.history()):
            if place == wanted:
                return version
        raise VersionUnknownError(f"{store.label} has no version {wanted} before the current one.")
    found = [version for version in store.history() if version.id.startswith(said)]
    exact = [version for version in found if version.id == said]
    if len(exact) == 1:
        return exact[0]
    if len(found) != 1 or not said:
        what = "several versions begin" if found else "no version is called or begins"
        raise VersionUnknownError(f"In {store.label}, {what} with `{said}`.")
    return found[0]
