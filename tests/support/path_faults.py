"""Everything that can go wrong at each call of an apply, as cases to run one after the other."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.path_runs import Rig, WatchedJournal, describe

from pvelab.server.journal import JournalEntry
from stackyard import lab

__all__ = ["Case", "Counts", "Spot", "call_cases", "run_case", "spots_of", "work_cases"]

_UPID = re.compile(r"UPID:([^:]+):[^:]+:[^:]+:[^:]+:([^:]+):([^:]+):[^/]*")
_MOST_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One call of an apply: the nth of those that look the same."""

    method: str
    path: str
    nth: int

    def __str__(self) -> str:
        return f"{self.method} {self.path}{f' #{self.nth}' if self.nth > 1 else ''}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault: fields for the lab, in force at once, or from the moment that a spot is reached."""

    kind: str
    name: str
    fault: dict[str, Any]
    since: Spot | None = None
    # A lock is taken away after so many tries, as when a backup ends while somebody waits for it.
    lifted_after: int = 0

    def __str__(self) -> str:
        return f"{self.kind} at {self.name}"


def spots_of(entries: Sequence[JournalEntry]) -> list[Spot]:
    """Return the calls of an apply, with what differs from run to run as a pattern."""
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    found = []
    for entry in entries:
        key = entry.method, _UPID.sub(r"UPID:\1:*:\2:\3:*", entry.path)
        seen[key] += 1
        found.append(Spot(method=key[0], path=key[1], nth=seen[key]))
    return found


def call_cases(spot: Spot, node: str) -> Iterator[Case]:
    """Return what can go wrong at one call."""
    where = {"method": spot.method, "path": spot.path, "nth": spot.nth, "times": 1}
    if spot.method != "SFTP":
        answers: dict[str, dict[str, Any]] = {
            "500": {"kind": "answer", "status": 500, "reason": "got bored"},
            "500 after the work": {"kind": "answer", "status": 500, "reason": "got bored", "when": "after"},
            "596": {"kind": "answer", "status": 596, "reason": "Broken pipe", "when": "after"},
            "delay": {"kind": "delay", "seconds": 1},
            "drop before": {"kind": "drop", "when": "before"},
            "drop after": {"kind": "drop", "when": "after"},
        }
        if spot.method != "GET":
            locked = "can't lock file '/var/lock/x.conf' - got timeout"
            answers["busy"] = {"kind": "answer", "status": 500, "reason": locked}
        for kind, fault in answers.items():
            yield Case(kind=kind, name=str(spot), fault={**fault, **where})
    down = {"kind": "node-down", "node": node}
    yield Case(kind="node down", name=str(spot), fault=down, since=spot)


def work_cases(spots: Sequence[Spot], tasks: Sequence[str]) -> Iterator[Case]:
    """Return what can go wrong with the work that calls start."""
    for task in tasks:
        for step, when in ((1, "early"), (0, "late")):
            fault = {"kind": "task", "task": task, "step": step, "text": "it broke", "times": 1}
            yield Case(kind=f"task fails {when}", name=task, fault=fault)
    for storage in ("local", "local-lvm"):
        yield Case(kind="storage full", name=storage, fault={"kind": "storage-full", "storage": storage})
    for spot in spots:
        guest = re.search(r"/tasks/UPID:[^:]+:\*:(?:qmcreate|vzcreate):(\d+):", spot.path)
        if guest:
            fault = {"kind": "lock", "vmid": int(guest[1]), "lock": "backup"}
            yield Case(kind="lock", name=guest[1], fault=fault, since=spot, lifted_after=_MOST_TRIES)


@dataclass
class Counts:
    """What came of cases, by kind."""

    ended: collections.Counter[str]
    failed: collections.Counter[str]

    @classmethod
    def none(cls) -> Counts:
        return cls(collections.Counter(), collections.Counter())

    def __str__(self) -> str:
        kinds = sorted({*self.ended, *self.failed})
        rows = [
            f"  {k}: {self.ended[k] + self.failed[k]}, {self.failed[k]} ended with an error" for k in kinds
        ]
        total = self.ended.total() + self.failed.total()
        return "\n".join([f"{total} faults, each followed by one apply that converged:", *rows])


def run_case(rig: Rig, journal: WatchedJournal, case: Case) -> bool:
    """Apply with a fault, repair, and settle; tell whether the apply with the fault ended well."""
    running = rig.yard.running
    rig.begin()
    trigger = _Trigger(running, case)
    if case.since is None:
        trigger.strike()
    else:
        journal.on_call = trigger.saw
    try:
        error = rig.apply()
    finally:
        journal.on_call = None
    struck = trigger.repair()
    assert struck, f"{case} did not happen; the apply ended with {error and describe(error)}"
    rig.settle()
    made = rig.creations()
    assert all(count <= 1 for count in made.values()), f"{case}: {made}"
    return error is None


class _Trigger:
    """Puts a fault in force when a spot is reached, and takes it away when it has done its work."""

    def __init__(self, running: lab.Running, case: Case) -> None:
        self._running = running
        self._case = case
        self._seen = 0
        self._tries = 0
        self._name: str | None = None
        self._was_lifted = False

    def strike(self) -> None:
        self._name = self._running.add_fault(**self._case.fault)

    def saw(self, entry: JournalEntry) -> None:
        """Look at a call, in the thread of the lab."""
        spot = self._case.since
        if self._name is None and spot is not None:
            self._seen += spots_of([entry])[0] == Spot(method=spot.method, path=spot.path, nth=1)
            if self._seen == spot.nth:
                self.strike()
        elif self._case.lifted_after and self._is_try(entry) and not self._was_lifted:
            self._tries += 1
            if self._tries >= self._case.lifted_after and self._name is not None:
                self._running.remove_fault(self._name)
                self._was_lifted = True

    def _is_try(self, entry: JournalEntry) -> bool:
        """Tell whether a call wants to change the guest that is locked."""
        return entry.method != "GET" and f"/{self._case.fault['vmid']}/" in entry.path

    def repair(self) -> bool:
        """Take the fault away; tell whether it struck."""
        if self._name is None:
            return False
        rules = self._running.on_loop(self._running.world.faults.rules)
        struck = rules[self._name][2] > 0 if self._name in rules else True
        if not self._was_lifted:
            self._running.remove_fault(self._name)
        return struck
