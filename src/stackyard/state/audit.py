"""The audit logs: reading them, and proving that nothing in them was changed or removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError
from stackyard.state import codec, layout, ledger
from stackyard.state.model import Actor, AuditAction, AuditEntry, Chain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.state.heads import Core

__all__ = ["AuditLogs", "ChainVerdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainVerdict:
    """Whether an audit log is whole.

    Attributes:
        name: The state; empty for the log of the service itself.
        entries: How many entries it has.
        last_hash: Where it ends; anyone who noted it down can later prove that nothing was rewritten.
        problem: What is wrong, empty when it is whole.
    """

    name: str
    entries: int
    last_hash: str
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


class AuditLogs:
    """The audit logs of all states, and that of the service itself."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def entries(self, name: str, *, after: int = 0) -> Iterator[AuditEntry]:
        """Yield the entries of a state behind a number, the oldest first; an empty name is the service."""
        chain, segment = self._chain(name)
        return ledger.audit_entries(self._core.objects, chain, segment, after=after)

    def verify(self, name: str) -> ChainVerdict:
        """Check every entry of a log against its hash and the one before."""
        chain, segment = self._chain(name)
        count, previous, problem = 0, "", ""
        try:
            for entry in ledger.audit_entries(self._core.objects, chain, segment):
                problem = _problem(entry, count + 1, previous)
                if problem:
                    break
                count, previous = entry.seq, entry.hash
        except StoreDamagedError as err:
            problem = err.detail
        if not problem and (count, previous) != (chain.count, chain.last_hash):
            problem = f"It ends with entry {count}, and should end with entry {chain.count}."
        return ChainVerdict(name=name, entries=count, last_hash=previous, problem=problem)

    def note(self, actor: Actor, action: AuditAction, **facts: Any) -> None:
        """Add an entry to the log of the service itself."""
        while True:
            stored = self._core.objects.get(layout.SYSTEM_AUDIT)
            chain = Chain() if stored is None else codec.load_chain(stored.data, layout.SYSTEM_AUDIT)
            grown, before = ledger.add_audit(
                chain, layout.system_segment, actor, action, at=self._core.clock(), **facts
            )
            data = orjson.dumps({"format": 1, "chain": grown})
            expect = ABSENT if stored is None else stored.tag
            try:
                self._core.objects.put(layout.SYSTEM_AUDIT, data, expect=expect, before=before)
            except ConflictError:
                continue
            return

    def _chain(self, name: str) -> tuple[Chain, Callable[[int], str]]:
        if name:
            return self._core.require(name).audit, lambda number: layout.audit_segment(name, number)
        stored = self._core.objects.get(layout.SYSTEM_AUDIT)
        chain = Chain() if stored is None else codec.load_chain(stored.data, layout.SYSTEM_AUDIT)
        return chain, layout.system_segment


def _problem(entry: AuditEntry, seq: int, previous: str) -> str:
    if entry.seq != seq:
        return f"Entry {seq} is missing."
    if entry.hash != ledger.audit_hash(entry):
        return f"Entry {seq} was changed."
    if entry.previous != previous:
        return f"Entry {seq} does not follow the one before it."
    return ""
