"""The guests of a run as rows: how far each is, what it waits for, and for how long. Kept from the events."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.render.names import key_of, label
from stackyard.render.references import guest_kind

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Row", "RowStatus", "RunRows"]

_UNDER_WAY = {"create": "creating", "update": "changing", "delete": "destroying", "replace": "replacing"}
_DONE = {"create": "created", "update": "changed", "delete": "destroyed"}
# Other words for the phases of a guest, which are the first words of the names of its steps.
_PHASES = {
    "verify": "booting",
    "create_guest": "creating",
    "wait_address": "booting",
    "wait_ssh": "booting",
    "wait_first_boot": "first boot",
    "wait_spec": "configuring",
    "apply_spec": "configuring",
    "run_playbook": "configuring",
    "write_marker": "configuring",
    "verify_ssh": "verifying",
    "migrate": "migrating",
}
_ENDED = {
    "create_guest": "created",
    "verify": "up",
    "wait_address": "up",
    "wait_ssh": "up",
    "wait_first_boot": "up",
    "wait_spec": "configured",
    "apply_spec": "configured",
    "run_playbook": "configured",
    "write_marker": "configured",
    "verify_ssh": "verified",
    "migrate": "migrated",
}


class RowStatus(enum.IntEnum):
    """Where a row stands, in the order in which rows are shown."""

    FAILED = 0
    RUNNING = 1
    WAITING = 2
    DONE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One guest, or one other resource, and how far it is.

    Attributes:
        name: What the user calls it.
        is_guest: Whether it is a guest.
        status: Where it stands.
        phase: The same in a word.
        detail: What it waits for, or why it failed.
        began_s: When its change began, on the monotonic clock.
        ended_s: When it ended.
        steps: How many steps of it are under way.
    """

    name: str
    is_guest: bool
    status: RowStatus = RowStatus.WAITING
    phase: str = "queued"
    detail: str = ""
    began_s: float | None = None
    ended_s: float | None = None
    steps: int = 0

    def elapsed_s(self, now_s: float) -> float | None:
        """Return how long it has been under way, or was."""
        if self.began_s is None:
            return None
        return (now_s if self.ended_s is None else self.ended_s) - self.began_s


class RunRows:
    """The rows of a run. One thread writes with `follow`, and any may read with `rows`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._guests: dict[str, str] = {}
        self._planned: dict[str, str] = {}
        self._is_applying = False

    def follow(self, event: events.Event) -> bool:
        """Keep up with one event; return whether a row shows all that it says."""
        match event:
            case events.StepStarted(step=step):
                return self._begin_step(step)
            case events.StepWaiting(step=step, waiting_for=waiting_for):
                return self._change_step(step, detail=waiting_for)
            case events.StepFinished():
                return self._end_step(event)
            case events.ResourcePlanned(address=address, action=action):
                self._planned[address] = action
                if self._is_applying:
                    self._add(address)
            case events.ResourceApplied():
                self._follow_resource(event)
            case events.ResourceWaiting(address=address, waiting_for=waiting_for):
                if self._is_applying:
                    self._add(address)
                self._change(address, detail=waiting_for)
            case events.DiagnosticFound(address=str(address), severity="error") if address in self._rows:
                self._change(address, status=RowStatus.FAILED, phase="failed", detail=event.summary)
            case _:
                return False
        return True

    def describe_totals(self) -> str:
        """Return how many guests are done, of how many, and how many failed."""
        statuses = [row.status for row in list(self._rows.values()) if row.is_guest]
        failed = statuses.count(RowStatus.FAILED)
        noun = "guest" if len(statuses) == 1 else "guests"
        done = f"{statuses.count(RowStatus.DONE)} of {len(statuses)} {noun} done"
        return f"{done}, {failed} failed" if failed else done

    def rows(self) -> list[Row]:
        """Return the rows to show: failed ones, slow ones, those that wait, and those that are done."""
        shown = [row for row in list(self._rows.values()) if row.is_guest or row.status < RowStatus.WAITING]
        return sorted(shown, key=_rank)

    def _begin_step(self, step: str) -> bool:
        if step == "plan":
            self._planned.clear()
        if step == "apply":
            self._is_applying = True
            for one in self._planned:
                self._add(one)
        address = self._find(step)
        if address is None:
            return False
        row, now_s = self._rows[address], self._clock()
        verb = _verb_of(step)
        self._rows[address] = replace(
            row,
            status=RowStatus.RUNNING,
            phase=_PHASES.get(verb, verb.replace("_", " ")),
            detail=row.detail if row.steps else "",
            began_s=row.began_s if row.began_s is not None else now_s,
            ended_s=None,
            steps=row.steps + 1,
        )
        return True

    def _change_step(self, step: str, **values: Any) -> bool:
        address = self._find(step)
        return address is not None and self._change(address, **values)

    def _end_step(self, event: events.StepFinished) -> bool:
        if event.step == "apply":
            self._is_applying = False
        address = self._find(event.step)
        if address is None:
            return False
        row = self._rows[address]
        left = max(0, row.steps - 1)
        if event.outcome is events.Outcome.FAILED:
            self._fail(address, event.detail)
        elif left or row.status is RowStatus.FAILED:
            self._change(address, detail="")
        else:
            self._end(address, _ENDED.get(_verb_of(event.step), row.phase))
        self._change(address, steps=left)
        return True

    def _follow_resource(self, event: events.ResourceApplied) -> None:
        address = event.address
        row = self._add(address)
        is_replaced = event.action == "delete" and self._planned.get(address) == "replace"
        match event.phase:
            case events.ApplyPhase.STARTED:
                is_download = event.action == "create" and "download_file." in address
                phase = "downloading" if is_download else _UNDER_WAY.get(event.action, event.action)
                began_s = row.began_s if row.began_s is not None else self._clock()
                self._change(address, status=RowStatus.RUNNING, phase=phase, detail="", began_s=began_s)
            case events.ApplyPhase.FAILED:
                self._fail(address, event.reason or (row.detail if row.status is RowStatus.FAILED else ""))
            case events.ApplyPhase.DONE if not is_replaced and not row.steps:
                self._end(address, _DONE.get(event.action, "done"))

    def _end(self, address: str, phase: str) -> None:
        self._change(address, status=RowStatus.DONE, phase=phase, detail="", ended_s=self._clock())

    def _fail(self, address: str, why: str) -> None:
        self._change(
            address, status=RowStatus.FAILED, phase="failed", detail=why, ended_s=self._clock(), steps=0
        )

    def _change(self, address: str, **values: Any) -> bool:
        if (row := self._rows.get(address)) is None:
            return False
        if row.status is RowStatus.FAILED and values.get("detail") == "":
            # A reason, once known, stays.
            values.pop("detail")
        self._rows[address] = replace(row, **values)
        return True

    def _add(self, address: str) -> Row:
        """Return the row of a resource, a new one where there is none."""
        if address not in self._rows:
            kind, _, name = address.rpartition(".")
            row = Row(name=key_of(name), is_guest=bool(guest_kind(kind)))
            self._rows[address] = row
            if row.is_guest:
                self._guests[name] = address
        return self._rows[address]

    def _find(self, step: str) -> str | None:
        """Return the address of the guest that a step is about: `verify web`, `inner/wait_ssh web`."""
        _, has_name, name = step.partition(" ")
        return self._guests.get(label(name)) if has_name and name else None


def _verb_of(step: str) -> str:
    """Return what a step does: `wait_ssh` for `inner/wait_ssh web`."""
    return step.rpartition("/")[2].partition(" ")[0]


def _rank(row: Row) -> tuple[int, float, str]:
    """Order rows: the slowest of those under way first, the newest of those that are done first."""
    since_s = row.began_s if row.status is RowStatus.RUNNING else -(row.ended_s or 0.0)
    return int(row.status), since_s or 0.0, row.name
