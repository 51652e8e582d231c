"""Heads and segments as bytes: JSON, which orjson writes straight from the frozen values."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.clients.objects import StoreDamagedError
from stackyard.state.lockinfo import LockInfo
from stackyard.state.model import (
    AuditAction,
    AuditEntry,
    Chain,
    Freeze,
    Grant,
    HeldLock,
    History,
    Index,
    Override,
    SpentLock,
    StateHead,
    Tombstone,
    Version,
    VersionKind,
    Waiter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "audit_entry",
    "dump_head",
    "dump_segment",
    "load_chain",
    "load_head",
    "load_segment",
    "version",
]

T = TypeVar("T")

_FORMAT = 1


def dump_head(head: StateHead) -> bytes:
    """Return the bytes of a head."""
    return orjson.dumps({"format": _FORMAT, "head": head})


def load_head(data: bytes, key: str) -> StateHead:
    """Read a head.

    Raises:
        StoreDamagedError: It is none, or of a newer stackyard.
    """
    return _load(data, key, lambda found: _head(found["head"]))


def load_chain(data: bytes, key: str) -> Chain:
    """Read the audit log of the service itself."""
    return _load(data, key, lambda found: _chain(found["chain"]))


def dump_segment(records: Sequence[Version] | Sequence[AuditEntry]) -> bytes:
    """Return the bytes of a segment of old records."""
    return zlib.compress(orjson.dumps({"format": _FORMAT, "records": list(records)}), 6)


def load_segment(data: bytes, key: str) -> list[dict[str, Any]]:
    """Read a segment; `version` or `audit_entry` makes values of what it holds."""
    try:
        plain = zlib.decompress(data)
    except zlib.error as err:
        raise StoreDamagedError(f"{key} is damaged.") from err
    found: list[dict[str, Any]] = _load(plain, key, lambda found: found["records"])
    return found


def _load(data: bytes, key: str, read: Callable[[dict[str, Any]], T]) -> T:
    try:
        found = parse_json(data, LARGE)
        if found["format"] > _FORMAT:
            raise StoreDamagedError(
                f"{key} was written by a newer stackyard.", remedy="Use the newer stackyard for this store."
            )
        return read(found)
    except (JsonError, KeyError, TypeError, ValueError) as err:
        raise StoreDamagedError(f"{key} is damaged.") from err


def version(found: dict[str, Any]) -> Version:
    """Return the version that a record describes."""
    return Version(**{**found, "kind": VersionKind(found["kind"])})


def audit_entry(found: dict[str, Any]) -> AuditEntry:
    """Return the audit entry that a record describes."""
    return AuditEntry(**{**found, "action": AuditAction(found["action"])})


def _head(found: dict[str, Any]) -> StateHead:
    lock, current = found["lock"], found["current"]
    freeze, tombstone = found["freeze"], found["tombstone"]
    return StateHead(
        **{
            **found,
            "lock": None if lock is None else HeldLock(**{**lock, "info": LockInfo(**lock["info"])}),
            "spent": tuple(SpentLock(**row) for row in found["spent"]),
            "waiting": tuple(Waiter(**{**row, "info": LockInfo(**row["info"])}) for row in found["waiting"]),
            "current": None if current is None else version(current),
            "history": _history(found["history"]),
            "audit": _chain(found["audit"]),
            "freeze": None if freeze is None else Freeze(**freeze),
            "tombstone": None if tombstone is None else Tombstone(**tombstone),
            "grants": tuple(_grant(row) for row in found["grants"]),
            "index": _index(found.get("index")),
        }
    )


def _index(found: dict[str, Any] | None) -> Index | None:
    if found is None:
        return None
    holdings = ((str(kind), str(node), str(identity)) for kind, node, identity in found["holdings"])
    return Index(sha256=found["sha256"], holdings=tuple(holdings))


def _grant(found: dict[str, Any]) -> Grant:
    return Grant(**{**found, "overrides": tuple(Override(word) for word in found["overrides"])})


def _history(found: dict[str, Any]) -> History:
    return History(**{**found, "tail": tuple(version(row) for row in found["tail"])})


def _chain(found: dict[str, Any]) -> Chain:
    return Chain(**{**found, "tail": tuple(audit_entry(row) for row in found["tail"])})
