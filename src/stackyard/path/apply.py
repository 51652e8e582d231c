"""Applying exactly one plan, and watching each guest come up as soon as it is there."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.engine import tofu
from stackyard.engine.changes import Action
from stackyard.path.credentials.apply import add_counts, record_kept, remove_credentials, set_credentials
from stackyard.path.credentials.perform import require_login
from stackyard.path.guest_progress import GuestProgress
from stackyard.path.handover import complete_handovers
from stackyard.path.migration import migrate_containers
from stackyard.path.registry import record_applied, record_target
from stackyard.path.verify import GuestUp, verify_guest
from stackyard.path.way_back import keep_way_back
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.desired import Guest
    from stackyard.engine.tofu import Applied
    from stackyard.path.credentials.perform import LoginSession
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run

__all__ = ["ApplyOutcome", "apply_plan", "verify_guests"]


_NOTHING = tofu.Applied(add=0, change=0, remove=0, imported=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOutcome:
    """What an apply did.

    Attributes:
        applied: What was changed.
        up: Guests that were seen to be up.
        down: Guests that were not, with the error of each.
    """

    applied: Applied
    up: tuple[GuestUp, ...] = ()
    down: tuple[StackyardError, ...] = ()


async def apply_plan(
    run: Run,
    made: Plan,
    *,
    is_verified: bool = True,
    on_resource: Callable[[events.ResourceApplied], None] | None = None,
    login: LoginSession | None = None,
) -> ApplyOutcome:
    """Apply a plan, and nothing else.

    Args:
        run: The target.
        made: The plan.
        is_verified: Whether to wait until the guests that it touches are up; and all other guests too, if the
            run before did not see them up.
        on_resource: Told of each resource as its change begins, continues and ends, while others are still
            worked on: who has more to do with a guest need not wait for the rest.
        login: Who sets passwords.

    Raises:
        LoginNeededError: Passwords are to be set, and there is no login; nothing was changed.
        TofuError: Some changes failed, each reported; the others were applied and stored.
        PlanStaleError: The state has changed since; nothing was applied.
        NoWayBackError: The network of a node would change, and it cannot be put back; nothing was applied.
        NetworkRestoredError: A node did not answer after a change of its network, which was put back.
    """
    require_login(made.credentials, login)
    began_at = time.time()
    progress = GuestProgress(run, made)
    watched = await _list_watched(run, made) if is_verified else {}
    watching = _GuestWatcher(run, watched, progress, on_resource)
    try:
        with events.step(run.emit, "apply", f"Applying {run.resolved.target}"), progress.reporting():
            async with keep_way_back(run, made.verdict):
                await record_target(run, made)
                if made.credentials.kept.addresses:
                    await asyncio.to_thread(record_kept, run, made.credentials)
                # The guard has agreed: what the plan was made on becomes the state.
                await complete_handovers(run, made)
                await remove_credentials(run, made.credentials)
                applied = await _run_apply(run, made, watching.emit)
            applied = add_counts(applied, await set_credentials(run, made.credentials, login))
            await record_applied(run, made, began_at)
        if run.served is not None:
            await run.served.journal.confirm_all()
        await migrate_containers(run, made.migrations)
        up, down = await watching.ends()
    finally:
        watching.cancel()
    return ApplyOutcome(applied=applied, up=up, down=down)


async def verify_guests(run: Run, made: Plan) -> ApplyOutcome:
    """Wait for the guests that should be up, where a plan has nothing to apply."""
    watching = _GuestWatcher(run, _list_started(made), GuestProgress(run, made), None)
    try:
        up, down = await watching.ends()
    finally:
        watching.cancel()
    return ApplyOutcome(applied=_NOTHING, up=up, down=down)


async def _run_apply(run: Run, made: Plan, emit: events.Emit) -> Applied:
    if made.changes.is_empty:
        return _NOTHING
    return await tofu.apply(run.workdir, made.path, parallelism=run.settings.parallelism, emit=emit)


async def _list_watched(run: Run, made: Plan) -> dict[str, Guest]:
    """Return the guests to wait for, by address: those that the plan touches, or all."""
    from stackyard.path.publish import is_state_published  # lazy: its schema, only for an apply

    started = _list_started(made)
    if not await asyncio.to_thread(is_state_published, run):
        # A run that was interrupted has created guests that this plan does not touch.
        return started
    touched = {
        change.address
        for change in made.changes.planned
        if change.action in (Action.CREATE, Action.UPDATE, Action.REPLACE)
    }
    return {address: guest for address, guest in started.items() if address in touched}


def _list_started(made: Plan) -> dict[str, Guest]:
    """Return the guests that should be up after a plan, by address."""
    return {
        address_of(guest): guest for guest in made.desired.guests if guest.started and not guest.is_template
    }


class _GuestWatcher:
    """Watches each guest from the moment that the engine is done with it."""

    def __init__(
        self,
        run: Run,
        guests: Mapping[str, Guest],
        progress: GuestProgress,
        on_resource: Callable[[events.ResourceApplied], None] | None,
    ) -> None:
        self._run = run
        self._guests = guests
        self._progress = progress
        self._on_resource = on_resource
        self._tasks: dict[str, asyncio.Task[GuestUp]] = {}

    def emit(self, event: events.Event) -> None:
        """Pass an event on, and begin to watch the guest that it says is done."""
        event = self._progress.complete(event)
        self._run.emit(event)
        if not isinstance(event, events.ResourceApplied):
            return
        self._progress.follow(event)
        if self._on_resource is not None:
            self._on_resource(event)
        if event.phase is events.ApplyPhase.DONE:
            is_going = event.action == "delete"
            guest = None if is_going else self._guests.get(event.address)
            if guest is not None:
                self._watch(event.address, guest)

    def _watch(self, address: str, guest: Guest) -> None:
        if address not in self._tasks:
            verifying = verify_guest(
                self._run.client,
                guest,
                probe_port=self._run.probe_port,
                emit=self._run.emit,
                since_s=self._progress.began_s(address),
            )
            self._tasks[address] = asyncio.create_task(verifying)

    async def ends(self) -> tuple[tuple[GuestUp, ...], tuple[StackyardError, ...]]:
        """Wait for every guest, also for those that the engine had nothing to do with."""
        for address, guest in self._guests.items():
            self._watch(address, guest)
        results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, StackyardError):
                raise result
        up = tuple(result for result in results if isinstance(result, GuestUp))
        return up, tuple(result for result in results if isinstance(result, StackyardError))

    def cancel(self) -> None:
        """Stop watching."""
        for task in self._tasks.values():
            task.cancel()
