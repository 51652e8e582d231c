"""Records that only grow: the newest in the head of a state, the older ones in segments that never change.

A segment is written when the newest records fill it, together with the head that no longer holds them. It
holds only what a head has held before, so that two writers who race write the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.clients.objects import Objects, StoreDamagedError
from stackyard.state import codec, layout
from stackyard.state.model import Actor, AuditAction, AuditEntry, Chain, History, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "SEGMENT",
    "add_audit",
    "add_version",
    "audit_entries",
    "audit_hash",
    "find_version",
    "versions_newest_first",
    "versions_oldest_first",
]

SEGMENT = 32


def add_version(name: str, history: History, new: Version) -> tuple[History, dict[str, bytes]]:
    """Return the history with one more version, and the objects to write before it."""
    tail, sealed, before = history.tail, history.sealed, {}
    if len(tail) >= SEGMENT:
        before[layout.version_segment(name, sealed)] = codec.dump_segment(tail)
        tail, sealed = (), sealed + 1
    grown = dataclasses.replace(history, tail=(*tail, new), sealed=sealed, count=new.number)
    return grown, before


def add_audit(
    chain: Chain, segment: Callable[[int], str], actor: Actor, action: AuditAction, **facts: Any
) -> tuple[Chain, dict[str, bytes]]:
    """Return the log with one more entry, and the objects to write before it.

    Args:
        chain: The log.
        segment: Names the object of a segment.
        actor: Who did it.
        action: What was done.
        facts: The other fields of the entry.
    """
    tail, sealed, before = chain.tail, chain.sealed, {}
    if len(tail) >= SEGMENT:
        before[segment(sealed)] = codec.dump_segment(tail)
        tail, sealed = (), sealed + 1
    entry = AuditEntry(
        seq=chain.count + 1,
        action=action,
        principal=actor.principal,
        address=actor.address,
        previous=chain.last_hash,
        **facts,
    )
    entry = dataclasses.replace(entry, hash=audit_hash(entry))
    return Chain(tail=(*tail, entry), sealed=sealed, count=entry.seq, last_hash=entry.hash), before


def audit_hash(entry: AuditEntry) -> str:
    """Return the hash that an entry must have."""
    bare = dataclasses.replace(entry, hash="")
    return hashlib.sha256(orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)).hexdigest()


def audit_entries(
    objects: Objects, chain: Chain, segment: Callable[[int], str], *, after: int = 0
) -> Iterator[AuditEntry]:
    """Yield the entries of a log behind a number, the oldest first.

    Raises:
        StoreDamagedError: A segment is missing or damaged.
    """
    for number in range(min(after // SEGMENT, chain.sealed), chain.sealed):
        for row in _segment(objects, segment(number)):
            if row["seq"] > after:
                yield codec.audit_entry(row)
    yield from (entry for entry in chain.tail if entry.seq > after)


def versions_newest_first(objects: Objects, name: str, history: History) -> Iterator[Version]:
    """Yield the versions that are kept, the newest first."""
    for one in reversed(history.tail):
        if one.number >= history.kept_from:
            yield one
    for number in reversed(range((history.kept_from - 1) // SEGMENT, history.sealed)):
        for row in reversed(_segment(objects, layout.version_segment(name, number))):
            if row["number"] >= history.kept_from:
                yield codec.version(row)


def versions_oldest_first(objects: Objects, name: str, history: History) -> Iterator[Version]:
    """Yield the versions that are kept, the oldest first."""
    for number in range((history.kept_from - 1) // SEGMENT, history.sealed):
        for row in _segment(objects, layout.version_segment(name, number)):
            if row["number"] >= history.kept_from:
                yield codec.version(row)
    yield from (one for one in history.tail if one.number >= history.kept_from)


def find_version(objects: Objects, name: str, history: History, number: int) -> Version | None:
    """Return the version of a number, None if there is none or it was dropped."""
    if not history.kept_from <= number <= history.count:
        return None
    segment = (number - 1) // SEGMENT
    if segment >= history.sealed:
        return next((one for one in history.tail if one.number == number), None)
    rows = _segment(objects, layout.version_segment(name, segment))
    return next((codec.version(row) for row in rows if row["number"] == number), None)


def _segment(objects: Objects, key: str) -> list[dict[str, Any]]:
    stored = objects.get(key)
    if stored is None:
        raise StoreDamagedError(f"{key} is missing.")
    return codec.load_segment(stored.data, key)
