"""Whole objects under a name, with compare-and-set, and leases.

`Objects` is the interface: `get`, `put` with the version that it expects to replace, `delete`, `list`.
Five stores implement it with the same promises: `MemoryObjects`, `SqliteObjects` (one file, any number of
processes of one machine), and for any number of machines PostgreSQL, S3 and a state service
(`open_objects("postgresql://user@host/database")`, `open_objects("s3://bucket/prefix")`,
`open_objects("https://host:port")`). `SealedObjects` encrypts any of them. `watch` waits for a change.
`leases` records which process does a piece of work and whether it is still alive. This package does not know
what the objects mean.
"""

from __future__ import annotations

from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    KeyFormError,
    ListedObject,
    Objects,
    RepeatableObjects,
    StoreAbsentError,
    StoreBusyError,
    Stored,
    StoreDamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnsafeError,
    Tag,
    check_key,
    check_write_id,
)
from stackyard.clients.objects.leases import Lease, LeaseInfo, LeaseLostError, LeaseWatch, acquire, read_lease
from stackyard.clients.objects.memory import MemoryObjects
from stackyard.clients.objects.open_store import open_objects
from stackyard.clients.objects.sqlite import SqliteObjects
from stackyard.clients.objects.watch import Watch, watch

__all__ = [
    "ABSENT",
    "ANYTHING",
    "ConflictError",
    "Expect",
    "KeyFormError",
    "Lease",
    "LeaseInfo",
    "LeaseLostError",
    "LeaseWatch",
    "ListedObject",
    "MemoryObjects",
    "Objects",
    "RepeatableObjects",
    "SqliteObjects",
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
    "Watch",
    "acquire",
    "check_key",
    "check_write_id",
    "open_objects",
    "read_lease",
    "watch",
]
