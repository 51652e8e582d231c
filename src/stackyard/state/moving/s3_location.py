"""A state as the engine's own S3 backend keeps it: one object, with a lock object beside it."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.clients.objects import ABSENT, ANYTHING, ConflictError, Objects, open_objects
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.moving.base import BackendLockedError, is_marker, make_marker
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from stackyard.state.document import StateDocument

__all__ = ["S3Location"]


class S3Location:
    """A state in a bucket, under the key that the backend's configuration names.

    The lock is the one of `use_lockfile`: an object `KEY.tflock` that is created only where there is none. An
    engine that locks with a DynamoDB table alone does not see it.

    Args:
        address: `s3://bucket/key`, with `?endpoint=` and `&region=` as for a store.

    Raises:
        UsageError: The address names no object.
        StoreError: The bucket cannot be used.
    """

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        folder, _, self._key = parts.path.lstrip("/").rpartition("/")
        if not self._key:
            raise UsageError(f"{address} names no object: give s3://bucket/path/terraform.tfstate.")
        self._label = f"s3://{parts.netloc}{parts.path}{f'?{parts.query}' if parts.query else ''}"

        self._objects: Objects = open_objects(urllib.parse.urlunsplit(parts._replace(path=f"/{folder}")))

    @property
    def label(self) -> str:
        """What the place is called."""
        return self._label

    def lock(self, info: LockInfo) -> None:
        """Make the lock object."""
        try:
            self._objects.put(self._lock_key, info.body(), expect=ABSENT)
        except ConflictError as err:
            holder = self._holder()
            who = f" by {holder.who} ({holder.operation}), lock {holder.id}" if holder is not None else ""
            raise BackendLockedError(f"{self._label} is locked{who}.") from err

    def unlock(self, info: LockInfo) -> None:
        """Remove the lock object, if it is ours."""
        holder = self._holder()
        if holder is not None and holder.id == info.id:
            self._objects.delete(self._lock_key)

    def read(self) -> bytes | None:
        """Return the state; None where there is none, or it was moved."""
        stored = self._objects.get(self._key)
        if stored is None or not stored.data.strip() or is_marker(stored.data):
            return None
        return stored.data

    def write(self, data: bytes, info: LockInfo) -> None:
        """Write the object, as long as no one else does."""
        del info
        there = self._objects.get(self._key)
        self._objects.put(self._key, data, expect=ABSENT if there is None else there.tag)

    def retire(self, data: bytes, document: StateDocument, destination: str, info: LockInfo) -> str | None:
        """Keep a copy beside the object, and put something in its place that the engine refuses to read."""
        del info
        backup = f"{self._key}.moved-{document.serial}"
        self._objects.put(backup, data, expect=ANYTHING)
        self._objects.put(self._key, make_marker(document, destination, backup), expect=ANYTHING)
        return f"out of use: engines refuse to read it; the old state is in {backup}"

    def close(self) -> None:
        """Close the connections."""
        self._objects.close()

    @property
    def _lock_key(self) -> str:
        return f"{self._key}.tflock"

    def _holder(self) -> LockInfo | None:
        stored = self._objects.get(self._lock_key)
        if stored is None:
            return None
        try:
            return parse_lock_info(stored.data)
        except BodyRefusedError:
            return None
