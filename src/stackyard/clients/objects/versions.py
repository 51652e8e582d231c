"""Objects in a bucket that keeps versions: what was replaced stays, and can be listed and read."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from stackyard.clients.objects.base import Expect, Tag, check_key
from stackyard.clients.objects.s3 import S3Objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["ObjectVersion", "VersionEntry", "VersionedObjects"]

_GONE = {"NoSuchKey", "NoSuchVersion", "404", "NotFound"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectVersion:
    """One version as it was read.

    Attributes:
        version_id: What the bucket calls it; `null` where it keeps no versions.
        marks: What its writer wrote beside it.
    """

    version_id: str
    data: bytes = field(repr=False)
    tag: Tag
    modified_at: float
    marks: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionEntry:
    """One version in a list."""

    version_id: str
    tag: Tag
    size: int
    modified_at: float
    is_latest: bool


class VersionedObjects(S3Objects):
    """A store in a bucket whose versions matter."""

    def keeps_versions(self) -> bool:
        """Return whether the bucket keeps what is replaced."""
        ask = functools.partial(self._client.get_bucket_versioning, Bucket=self._place.bucket)
        return bool(self._repeat("", ask).get("Status") == "Enabled")

    def get_version(self, key: str, version_id: str | None = None) -> ObjectVersion | None:
        """Return a version, the current one where none is named; None where there is none."""
        wanted = self._version_parameters(key, version_id)

        def read() -> ObjectVersion | None:
            try:
                answer = self._client.get_object(**wanted)
            except ClientError as err:
                if err.response.get("Error", {}).get("Code") in _GONE:
                    return None
                raise
            return ObjectVersion(
                version_id=answer.get("VersionId", "null"),
                data=self._body(key, answer),
                tag=Tag(answer["ETag"]),
                modified_at=answer["LastModified"].timestamp(),
                marks=dict(answer.get("Metadata", {})),
            )

        return self._repeat(key, read)

    def get_marks(self, key: str, version_id: str) -> dict[str, str]:
        """Return what the writer of a version wrote beside it; nothing where others removed it since."""
        wanted = self._version_parameters(key, version_id)

        def read() -> dict[str, str]:
            try:
                return dict(self._client.head_object(**wanted).get("Metadata", {}))
            except ClientError as err:
                if err.response.get("Error", {}).get("Code") in _GONE:
                    return {}
                raise

        return self._repeat(key, read)

    def put_marked(self, key: str, data: bytes, *, expect: Expect, marks: Mapping[str, str]) -> Tag:
        """Write an object with something about it beside it.

        Raises:
            ConflictError: The object is not what was expected. Nothing was replaced.
        """
        check_key(key)
        self._require_proof()
        return self._put(key, data, expect, marks)

    def versions(self, key: str, *, with_deletions: bool = False) -> Iterator[VersionEntry]:
        """Return the versions of an object, the newest first; deletions only where they are asked for."""
        request = {"Bucket": self._place.bucket, "Prefix": self._object_parameters(key)["Key"]}
        while True:
            ask = functools.partial(self._client.list_object_versions, **request)
            answer = self._repeat(key, ask)
            rows = [*answer.get("Versions", ()), *(answer.get("DeleteMarkers", ()) if with_deletions else ())]
            for row in rows:
                if row["Key"] == request["Prefix"]:
                    yield VersionEntry(
                        version_id=row["VersionId"],
                        tag=Tag(row.get("ETag", "")),
                        size=row.get("Size", 0),
                        modified_at=row["LastModified"].timestamp(),
                        is_latest=row["IsLatest"],
                    )
            # To the end, whatever keys come between: SeaweedFS has an order of its own.
            if not answer.get("IsTruncated"):
                return
            request["KeyMarker"] = answer["NextKeyMarker"]
            if answer.get("NextVersionIdMarker"):
                request["VersionIdMarker"] = answer["NextVersionIdMarker"]

    def versions_behind(self, key: str, tag: Tag) -> tuple[str, ...]:
        """Return the versions of an object that are older than the one with this content.

        What is newer is left out even if it is not the latest: a list that is created while someone writes
        may show a version that is about to be the latest.
        """
        rows = itertools.dropwhile(lambda one: one.tag != tag, self.versions(key, with_deletions=True))
        return tuple(entry.version_id for entry in itertools.islice(rows, 1, None))

    def drop_versions(self, key: str, version_ids: Iterable[str]) -> None:
        """Remove versions of an object whose history means nothing, such as a lease."""
        for version_id in version_ids:
            wanted = self._version_parameters(key, version_id)
            self._repeat(key, functools.partial(self._client.delete_object, **wanted), is_write=True)

    def _discard(self, key: str) -> None:
        self.drop_versions(key, [one.version_id for one in self.versions(key, with_deletions=True)])

    def _version_parameters(self, key: str, version_id: str | None) -> dict[str, Any]:
        named = self._object_parameters(check_key(key))
        return named if version_id is None else {**named, "VersionId": version_id}
