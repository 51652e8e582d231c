"""Whole objects under a name, with compare-and-set, and leases.

`Objects` is the seam: `get`, `put` with what is expected to be replaced, `delete`, `list`. There are three
stores behind it, all with the same promises: `MemoryObjects`, `SqliteObjects` (one file, any number of
processes of one machine) and S3 (any number of machines; `open_objects("s3://bucket/prefix")`).
`SealedObjects` encrypts any of them. `leases` says who does a piece of work and whether they are still
alive. This package knows nothing of what the objects mean.
"""

from __future__ import annotations

from stackyard.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Entry,
    Expect,
    KeyFormError,
    Objects,
    StoreBusyError,
    Stored,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnsafeError,
    Tag,
    check_key,
)
from stackyard.objects.leases import Lease, LeaseInfo, LeaseLostError, LeaseWatch, acquire, read_lease
from stackyard.objects.memory import MemoryObjects
from stackyard.objects.opening import open_objects
from stackyard.objects.sqlite import SqliteObjects

__all__ = [
    "ABSENT",
    "ANYTHING",
    "ConflictError",
    "Entry",
    "Expect",
    "KeyFormError",
    "Lease",
    "LeaseInfo",
    "LeaseLostError",
    "LeaseWatch",
    "MemoryObjects",
    "Objects",
    "SqliteObjects",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreUnsafeError",
    "Stored",
    "Tag",
    "acquire",
    "check_key",
    "open_objects",
    "read_lease",
]
