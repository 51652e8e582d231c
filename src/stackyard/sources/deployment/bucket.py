"""The object as plain JSON at a key of a bucket; the versions of the bucket are its history."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING

from stackyard.clients.objects import ABSENT, ConflictError, StoreError, Tag
from stackyard.sources.deployment.store import (
    FetchedObject,
    MovedError,
    UnversionedError,
    Version,
    VersionAuthor,
    VersionUnknownError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects.versions import ObjectVersion, VersionedObjects

__all__ = ["BucketStore"]


class BucketStore:
    """The object in a bucket.

    Args:
        objects: The bucket.
        key: The key of the object in it.
        label: What it is called in messages.
    """

    def __init__(self, objects: VersionedObjects, key: str, label: str) -> None:
        self._objects = objects
        self._key = key
        self._label = label

    @property
    def label(self) -> str:
        """Where the object is."""
        return self._label

    @property
    def objects(self) -> VersionedObjects:
        """Where the lease is."""
        return self._objects

    @property
    def lease_key(self) -> str:
        """The name of the lease."""
        return f"{self._key}.lease"

    def read(self) -> FetchedObject | None:
        """Return the current version."""
        found = self._objects.get_version(self._key)
        return None if found is None else _make_fetched_object(found, is_current=True)

    def write(self, data: bytes, *, replaces: Version | None, authored: VersionAuthor) -> Version:
        """Write a version, if the bucket keeps what it replaces."""
        if not self._objects.keeps_versions():
            raise UnversionedError(f"The bucket of {self._label} keeps no versions.")
        marks = {"by": authored.by, "note": authored.note, "kind": authored.kind}
        expect = ABSENT if replaces is None else Tag(f'"{replaces.etag}"')
        try:
            self._objects.put_marked(
                self._key,
                data,
                expect=expect,
                marks={
                    name: urllib.parse.quote(text[:500], safe=" ") for name, text in marks.items() if text
                },
            )
        except ConflictError as err:
            now = self.read()
            there = "nothing" if now is None else f"version {now.version.id} (etag {now.version.etag})"
            was = "nothing" if replaces is None else f"version {replaces.id} (etag {replaces.etag})"
            raise MovedError(
                f"{self._label} was {was} when it was read, and is {there} now.",
                read="" if replaces is None else replaces.etag,
                there="" if now is None else now.version.etag,
            ) from err
        written = self.read()
        if written is None or written.data != data:
            # Someone wrote right behind us: ours is among the versions, with the etag of our content.
            written = next((one for one in self._versions() if one.data == data), written)
        if written is None:
            raise MovedError(f"{self._label} is gone right after it was written.")
        return written.version

    def history(self) -> Iterator[Version]:
        """Return the versions, the newest first, with who wrote each."""
        is_listed = False
        for found in self._objects.versions(self._key):
            is_listed = True
            marked = self._objects.get_marks(self._key, found.version_id)
            yield Version(
                id=found.version_id,
                etag=found.tag.strip('"'),
                at=found.modified_at,
                size=found.size,
                is_current=found.is_latest,
                authored=_parse_author(marked),
            )
        if not is_listed and self._objects.get_version(self._key) is not None:
            # Seen with SeaweedFS 4: of a list in pages, the versions of one key are left out where many
            # other keys begin with it.
            raise StoreError(
                f"{self._label} is there, and the bucket lists no version of it.",
                remedy="Keep it in a folder of its own: too many objects beside it begin with its name.",
            )

    def read_version(self, version: Version) -> FetchedObject:
        """Return an earlier version."""
        found = self._objects.get_version(self._key, version.id)
        if found is None:
            raise VersionUnknownError(f"{self._label} has no version {version.id}.")
        return _make_fetched_object(found, is_current=version.is_current)

    def close(self) -> None:
        """Close the connections."""
        self._objects.close()

    def _versions(self) -> Iterator[FetchedObject]:
        for version in self.history():
            yield self.read_version(version)


def _make_fetched_object(found: ObjectVersion, *, is_current: bool) -> FetchedObject:
    return FetchedObject(
        data=found.data,
        version=Version(
            id=found.version_id,
            etag=found.tag.strip('"'),
            at=found.modified_at,
            size=len(found.data),
            is_current=is_current,
            authored=_parse_author(found.marks),
        ),
    )


def _parse_author(marks: dict[str, str]) -> VersionAuthor:
    return VersionAuthor(
        **{name: urllib.parse.unquote(marks[name]) for name in ("by", "note", "kind") if name in marks}
    )
