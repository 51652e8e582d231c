"""The object in a store of objects: SQLite beside the state, or memory.

The head says which version is current and is replaced by compare-and-set; each version is an object of its
own, written with it, that names the one before.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError
from stackyard.sources.deployment.store import (
    FetchedObject,
    MovedError,
    Version,
    VersionAuthor,
    VersionUnknownError,
    fingerprint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects, Stored

__all__ = ["EmbeddedStore"]

_HEAD = "head"
_LEASE = "lease"
_ETAG_DIGITS = 32


class EmbeddedStore:
    """The object in a store of objects.

    Args:
        objects: The store.
        label: What it is called in messages.
        prefix: What comes before its names there.
    """

    def __init__(self, objects: Objects, label: str, *, prefix: str = "deployment") -> None:
        self._objects = objects
        self._label = label
        self._prefix = prefix

    @property
    def label(self) -> str:
        """Where the object is."""
        return self._label

    @property
    def objects(self) -> Objects:
        """Where the lease is."""
        return self._objects

    @property
    def lease_key(self) -> str:
        """The name of the lease."""
        return f"{self._prefix}/{_LEASE}"

    def read(self) -> FetchedObject | None:
        """Return the current version."""
        head = self._objects.get(self._head)
        if head is None:
            return None
        return self._version(self._current(head), is_current=True)

    def write(self, data: bytes, *, replaces: Version | None, authored: VersionAuthor) -> Version:
        """Write a version and make it current, in one transaction."""
        head = self._objects.get(self._head)
        before = None if head is None else self._current(head)
        there = None if before is None else self._version(before, is_current=True).version
        if (there is None) != (replaces is None) or (there and replaces and there.id != replaces.id):
            raise self._make_moved_error(replaces)
        number = 1 if there is None else int(there.id) + 1
        name = f"{self._prefix}/versions/{number:09d}-{uuid.uuid4().hex}"
        record = {
            "number": number,
            "previous": before,
            "at": time.time(),
            "by": authored.by,
            "note": authored.note,
            "kind": authored.kind,
            "text": data.decode(),
        }
        try:
            self._objects.put(
                self._head,
                orjson.dumps({"current": name}),
                expect=ABSENT if head is None else head.tag,
                before={name: orjson.dumps(record)},
            )
        except ConflictError as err:
            raise self._make_moved_error(replaces) from err
        return _describe_version(record, data, is_current=True)

    def history(self) -> Iterator[Version]:
        """Return the versions, the newest first."""
        head = self._objects.get(self._head)
        name = None if head is None else self._current(head)
        is_current = True
        while name is not None:
            record = self._record(name)
            yield _describe_version(record, record["text"].encode(), is_current=is_current)
            name, is_current = record["previous"], False

    def read_version(self, version: Version) -> FetchedObject:
        """Return an earlier version."""
        found = self._objects.list(f"{self._prefix}/versions/{int(version.id):09d}-")
        chain = {entry.key for entry in found}
        head = self._objects.get(self._head)
        name = None if head is None else self._current(head)
        while name is not None:
            if name in chain:
                return self._version(name, is_current=version.is_current)
            name = self._record(name)["previous"]
        raise VersionUnknownError(f"{self._label} has no version {version.id}.")

    def close(self) -> None:
        """Close the store of objects."""
        self._objects.close()

    @property
    def _head(self) -> str:
        return f"{self._prefix}/{_HEAD}"

    def _make_moved_error(self, replaces: Version | None) -> MovedError:
        now = self.read()
        there = "nothing" if now is None else f"version {now.version.id} (etag {now.version.etag})"
        was = "nothing" if replaces is None else f"version {replaces.id} (etag {replaces.etag})"
        return MovedError(
            f"{self._label} was {was} when it was read, and is {there} now.",
            read="" if replaces is None else replaces.etag,
            there="" if now is None else now.version.etag,
        )

    def _current(self, head: Stored) -> str:
        try:
            return str(parse_json(head.data)["current"])
        except (JsonError, KeyError, TypeError) as err:
            raise StoreDamagedError(f"{self._label} has a head that cannot be read.") from err

    def _record(self, name: str) -> dict[str, Any]:
        stored = self._objects.get(name)
        try:
            record: dict[str, Any] = parse_json(b"" if stored is None else stored.data)
        except JsonError as err:
            raise StoreDamagedError(f"{self._label} lacks its version {name}.") from err
        return record

    def _version(self, name: str, *, is_current: bool) -> FetchedObject:
        record = self._record(name)
        data = record["text"].encode()
        return FetchedObject(data=data, version=_describe_version(record, data, is_current=is_current))


def _describe_version(record: dict[str, Any], data: bytes, *, is_current: bool) -> Version:
    return Version(
        id=str(record["number"]),
        etag=fingerprint(data)[:_ETAG_DIGITS],
        at=record["at"],
        size=len(data),
        is_current=is_current,
        authored=VersionAuthor(by=record["by"], note=record["note"], kind=record["kind"]),
    )
