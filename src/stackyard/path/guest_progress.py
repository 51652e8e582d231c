"""What each guest of a plan waits for while the plan is applied, and since when its change is under way."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.engine.changes import Action
from stackyard.guard.subjects import describe, is_guest, name_of, vm_id_of
from stackyard.render.references import References, address_of, data_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.path.plan import Plan
    from stackyard.path.run import Run

__all__ = ["GuestProgress"]

_MADE = (Action.CREATE, Action.UPDATE, Action.REPLACE)


class GuestProgress:
    """Follows an apply and reports what its guests wait for.

    Args:
        run: The target.
        made: The plan that is applied.
    """

    def __init__(self, run: Run, made: Plan) -> None:
        self._run = run
        self._subjects = {change.address: describe(change) for change in made.changes.planned}
        self._by_vm_id = {
            vm_id: change.address
            for change in made.changes.planned
            if is_guest(change) and (vm_id := vm_id_of(change)) is not None
        }
        # Guests whose VM IDs the provider chooses are known by their names.
        self._by_name = {
            name_of(change): change.address
            for change in made.changes.planned
            if is_guest(change) and vm_id_of(change) is None
        }
        self._needs = _read_needs(made)
        self._needed_by: dict[str, list[str]] = {}
        for guest, needs in self._needs.items():
            for needed in needs:
                self._needed_by.setdefault(needed, []).append(guest)
        self._began_s: dict[str, float] = {}
        self._failures: dict[str, str] = {}

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """Report for the length of the block, beginning with guests that wait for something else."""
        waits = None if self._run.served is None else self._run.served.waits
        if waits is not None:
            waits.listener, waits.on_failure = self._report_wait, self._note_failure
        for guest in self._needs:
            self._report_needs(guest)
        try:
            yield
        finally:
            if waits is not None:
                waits.listener = waits.on_failure = None

    def follow(self, event: events.ResourceApplied) -> None:
        """Take note of what happens to a resource."""
        if event.phase is events.ApplyPhase.STARTED:
            self._began_s.setdefault(event.address, time.monotonic())
            self._needs.pop(event.address, None)
        elif event.phase is events.ApplyPhase.DONE:
            for guest in self._needed_by.pop(event.address, ()):
                if guest in self._needs:
                    self._needs[guest].remove(event.address)
                    self._report_needs(guest)

    def complete(self, event: events.Event) -> events.Event:
        """Return an event with the reason of a failure, where the provider has told it."""
        if not isinstance(event, events.ResourceApplied) or event.phase is not events.ApplyPhase.FAILED:
            return event
        return replace(event, reason=self._failures.get(event.address))

    def began_s(self, address: str) -> float | None:
        """Return when the change of a resource began, on the monotonic clock."""
        return self._began_s.get(address)

    def _report_needs(self, guest: str) -> None:
        missing = ", ".join(self._subjects[address] for address in self._needs[guest])
        self._run.emit(events.ResourceWaiting(address=guest, waiting_for=missing or "its turn"))

    def _find(self, vm_id: int) -> str | None:
        names = {} if self._run.served is None else self._run.served.waits.names
        return self._by_vm_id.get(vm_id) or self._by_name.get(names.get(vm_id, ""))

    def _note_failure(self, vm_id: int, reason: str) -> None:
        if (address := self._find(vm_id)) is not None:
            self._failures[address] = self._run.workdir.redactor(reason)

    def _report_wait(self, vm_id: int, waiting_for: str) -> None:
        if (address := self._find(vm_id)) is not None:
            self._run.emit(events.ResourceWaiting(address=address, waiting_for=waiting_for))


def _read_needs(made: Plan) -> dict[str, list[str]]:
    """Return what the plan makes or changes before each of its guests, by the guest's address."""
    planned = {change.address: change for change in made.changes.planned if change.action in _MADE}
    references = References(made.desired)
    needs: dict[str, list[str]] = {}
    for guest in made.desired.guests:
        if (address := address_of(guest)) in planned:
            before = dict.fromkeys((*references.before(guest), *data_addresses(guest.key)))
            if found := [one for one in before if one in planned]:
                needs[address] = found
    return needs
