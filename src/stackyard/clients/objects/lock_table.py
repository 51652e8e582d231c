"""The DynamoDB table with which the engine's S3 backend locked, and what a bucket tells of its lock objects.

The engine keeps two items for a state: `BUCKET/KEY` while it is locked, and `BUCKET/KEY-md5` with the MD5 of
what was written last. With `use_lockfile`, it also creates the object `KEY.tflock` and deletes it again.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import UnreachableError
from stackyard.clients.objects.s3_client import S3Config, make_client

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LockTable", "LockTableError", "StateBucket", "TableLock", "WrittenVersion", "pair_cycles"]

_DIGEST_SUFFIX = "-md5"
_LOCK_SUFFIX = ".tflock"
_GONE = {"ResourceNotFoundException", "NoSuchKey", "404"}
_NO_LIFECYCLE = {"NoSuchLifecycleConfiguration", "NotImplemented", "501"}
# The id of a version that was written while the bucket kept none: the next such write replaces it.
_UNVERSIONED = "null"


class LockTableError(UnreachableError):
    """The DynamoDB table or the bucket of a state does not answer, or refuses us."""

    code = "E-LOCK-TABLE"
    summary = "The lock table or the bucket cannot be used"
    default_remedy = "Check the region, the endpoints and the credentials, then repeat the command."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLock:
    """A lock that is held in the table.

    Attributes:
        state: What is locked, `BUCKET/KEY`.
        who: Who holds it, as the engine says it.
        operation: For what.
    """

    state: str
    who: str
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVersion:
    """A version of a state in a bucket.

    Attributes:
        id: The id of the version.
        at: When it was written, in seconds since 1970.
        is_locked: Whether the lock object was there when it was written.
    """

    id: str
    at: float
    is_locked: bool

    @property
    def is_kept(self) -> bool:
        """Whether the bucket kept versions when it was written."""
        return self.id != _UNVERSIONED


@contextlib.contextmanager
def _answers(what: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as err:
        raise LockTableError(f"{what}: {err}.") from err


class LockTable:
    """A table.

    Args:
        name: The table.
        place: Where it is; its bucket does not matter.

    Raises:
        StoreError: What is set in the environment cannot be used.
    """

    def __init__(self, name: str, place: S3Config) -> None:
        self.name = name
        self._client = make_client(place, service="dynamodb")

    def exists(self) -> bool:
        """Return whether the table is there."""
        try:
            with _answers(f"The table {self.name}"):
                self._client.describe_table(TableName=self.name)
        except LockTableError as err:
            if _code(err) in _GONE:
                return False
            raise
        return True

    def read_digest(self, state: str) -> str | None:
        """Return the MD5 of what was written last of a state, `BUCKET/KEY`; None where there is none."""
        item = self._get(f"{state}{_DIGEST_SUFFIX}")
        return None if item is None else str(item.get("Digest", {}).get("S", ""))

    def read_lock(self, state: str) -> TableLock | None:
        """Return the lock of a state, None where it is free."""
        item = self._get(state)
        return None if item is None else _lock_of(item)

    def list_items(self) -> tuple[tuple[TableLock, ...], tuple[str, ...]]:
        """Return the locks that are held, and the states whose digests are kept."""
        locks, digests = [], []
        start: dict[str, Any] = {}
        while True:
            with _answers(f"The table {self.name}"):
                found = self._client.scan(TableName=self.name, ConsistentRead=True, **start)
            for item in found["Items"]:
                name = item["LockID"]["S"]
                if name.endswith(_DIGEST_SUFFIX):
                    digests.append(name.removesuffix(_DIGEST_SUFFIX))
                else:
                    locks.append(_lock_of(item))
            if "LastEvaluatedKey" not in found:
                return tuple(locks), tuple(sorted(digests))
            start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def delete(self) -> None:
        """Delete the table."""
        with _answers(f"The table {self.name}"):
            self._client.delete_table(TableName=self.name)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _get(self, name: str) -> dict[str, Any] | None:
        with _answers(f"The table {self.name}"):
            found = self._client.get_item(
                TableName=self.name, Key={"LockID": {"S": name}}, ConsistentRead=True
            )
        item: dict[str, Any] | None = found.get("Item")
        return item


class StateBucket:
    """A bucket with states.

    Args:
        place: Where it is.

    Raises:
        StoreError: What is set in the environment cannot be used.
    """

    def __init__(self, place: S3Config) -> None:
        self.name = place.bucket
        self._client = make_client(place)

    def is_versioned(self) -> bool:
        """Return whether the bucket keeps versions."""
        with _answers(f"The bucket {self.name}"):
            return bool(self._client.get_bucket_versioning(Bucket=self.name).get("Status") == "Enabled")

    def list_keys(self, key: str, workspaces: str) -> Iterator[str]:
        """Yield the keys of a state: its own, and those of its workspaces, deleted ones too."""
        found = {key: None}
        pages = self._client.get_paginator("list_object_versions")
        with _answers(f"The bucket {self.name}"):
            for page in pages.paginate(Bucket=self.name, Prefix=f"{workspaces}/"):
                for one in page.get("Versions", ()):
                    inner = one["Key"].removeprefix(f"{workspaces}/")
                    if inner.partition("/")[2] == key:
                        found[one["Key"]] = None
        yield from found

    def find_kept_days(self, key: str) -> int | None:
        """Return after how many days old versions of a key are removed; None where they never are."""
        try:
            with _answers(f"The bucket {self.name}"):
                said = self._client.get_bucket_lifecycle_configuration(Bucket=self.name)
        except LockTableError as err:
            if _code(err) in _NO_LIFECYCLE:
                return None
            raise
        days = [
            rule["NoncurrentVersionExpiration"].get("NoncurrentDays", 0)
            for rule in said.get("Rules", ())
            if rule.get("Status") == "Enabled" and "NoncurrentVersionExpiration" in rule
            if key.startswith(_prefix_of(rule))
        ]
        return min(days, default=None)

    def read_md5(self, key: str) -> str | None:
        """Return the MD5 of a state, None where there is none."""
        try:
            with _answers(f"The bucket {self.name}"):
                body = self._client.get_object(Bucket=self.name, Key=key)["Body"].read()
        except LockTableError as err:
            if _code(err) in _GONE:
                return None
            raise
        return hashlib.md5(body, usedforsecurity=False).hexdigest()

    def has_lock_object(self, key: str) -> bool:
        """Return whether the lock object of a state is there now."""
        try:
            with _answers(f"The bucket {self.name}"):
                self._client.head_object(Bucket=self.name, Key=key + _LOCK_SUFFIX)
        except LockTableError as err:
            if _code(err) in _GONE:
                return False
            raise
        return True

    def list_versions(self, key: str, since: float) -> list[WrittenVersion]:
        """Return the versions of a state that were written since a time, the oldest first."""
        written, locked, freed, is_held = [], [], [], False
        pages = self._client.get_paginator("list_object_versions")
        with _answers(f"The bucket {self.name}"):
            for page in pages.paginate(Bucket=self.name, Prefix=key):
                for one in page.get("Versions", ()):
                    at = one["LastModified"].timestamp()
                    if one["Key"] == key:
                        written.append((at, one["VersionId"]))
                    elif one["Key"] == key + _LOCK_SUFFIX:
                        locked.append(at)
                        is_held |= one["IsLatest"]
                freed += [
                    one["LastModified"].timestamp()
                    for one in page.get("DeleteMarkers", ())
                    if one["Key"] == key + _LOCK_SUFFIX
                ]
        cycles = pair_cycles(locked, freed, is_held=is_held)
        return [
            WrittenVersion(id=which, at=at, is_locked=any(start <= at <= end for start, end in cycles))
            for at, which in sorted(written)
            if at >= since
        ]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def pair_cycles(locked: list[float], freed: list[float], *, is_held: bool) -> list[tuple[float, float]]:
    """Return from when to when a lock object was there, each time.

    Several cycles may fall into one second, which is all that a bucket tells: each end belongs to one begin.

    Args:
        locked: When it was created, each time.
        freed: When it was deleted, each time.
        is_held: Whether it is there now; only then has the last cycle no end. Any other without an end is
            known for the moment in which it began, and no longer.
    """
    starts, ends, cycles, place = sorted(locked), sorted(freed), [], 0
    for number, start in enumerate(starts, 1):
        while place < len(ends) and ends[place] < start:
            place += 1
        unknown = float("inf") if is_held and number == len(starts) else start
        cycles.append((start, ends[place] if place < len(ends) else unknown))
        place += 1
    return cycles


def _prefix_of(rule: dict[str, Any]) -> str:
    """Return what the keys of a lifecycle rule begin with; its other conditions are taken as met."""
    chosen = rule.get("Filter") or {}
    return str(chosen.get("Prefix") or chosen.get("And", {}).get("Prefix") or rule.get("Prefix") or "")


def _lock_of(item: dict[str, Any]) -> TableLock:
    try:
        info = parse_json(item.get("Info", {}).get("S", "{}"))
        who, operation = str(info.get("Who", "")), str(info.get("Operation", ""))
    except (JsonError, AttributeError):
        who = operation = ""
    return TableLock(state=item["LockID"]["S"], who=who or "somebody", operation=operation)


def _code(err: LockTableError) -> str:
    cause = err.__cause__
    return str(cause.response.get("Error", {}).get("Code", "")) if isinstance(cause, ClientError) else ""
