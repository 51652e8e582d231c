"""Runs that stackyard itself starts: a lease that proves them alive, and the proof that one is dead."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.run_stop import stop_run
from stackyard.clients.objects import LeaseLostError, LeaseWatch, StoreError, acquire, read_lease
from stackyard.clients.objects.base import StoreBusyError
from stackyard.clients.objects.heartbeat import keep_alive
from stackyard.clients.objects.holders import describe_process, is_process_gone
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.clients.objects import Objects

__all__ = ["RunWatch", "hold_run"]

# A run is silent for this long only when it is dead, or its machine is; a third of it passes between
# heartbeats.
PROMISE_S = 30.0
# A run that was silent for so long by the clock of the store is dead.
_FORGOTTEN_AFTER_S = 7 * 86_400.0


class RunWatch:
    """Tells whether runs are dead.

    Args:
        objects: The store of their leases.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._watch = LeaseWatch()

    def explain_death(self, key: str) -> str | None:
        """Say why a run is certainly dead; None while it may be alive.

        A process of this machine is looked for. Of any other, the heartbeat must have been silent for as long
        as it promised, as seen by ourselves: the first look therefore never proves anything.
        """
        lease = read_lease(self._objects, key)
        if lease is None or lease.is_released:
            return f"The run {key} has ended."
        if is_process_gone(lease.facts):
            return f"The process {lease.facts.get('pid')} of the run {key} is gone."
        if self._watch.is_dead(key, lease):
            return f"The run {key} of {lease.owner} has been silent for {lease.promise_s:g} s."
        return None


@contextlib.asynccontextmanager
async def hold_run(
    objects: Objects,
    run_id: str,
    *,
    owner: str,
    promise_s: float = PROMISE_S,
    on_loss: Callable[[str], None] | None = None,
) -> AsyncIterator[str]:
    """Prove this process alive for the length of the block, and give the name of its lease.

    Args:
        objects: The store.
        run_id: The run.
        owner: Who runs it.
        promise_s: How long the run may be silent before others take over what it holds.
        on_loss: Told why others may do that already; without it, the run stops as Ctrl-C does.

    Raises:
        StoreError: The store cannot be used.
    """
    key = f"{layout.RUNS}{run_id}"
    lease = await asyncio.to_thread(
        acquire, objects, key, owner=owner, promise_s=promise_s, facts=describe_process()
    )
    if lease is None:
        raise LeaseLostError(f"The run {run_id} exists already.")
    try:
        async with keep_alive(lease, on_loss or functools.partial(stop_run, emit=events.ignore)):
            yield key
    finally:
        with contextlib.suppress(StoreError, StoreBusyError):
            await asyncio.to_thread(_end, objects, key)


def _end(objects: Objects, key: str) -> None:
    """Remove what proved us alive, and what runs left that were killed long ago.

    A run whose object is gone has ended. No one takes the lease of a run over, so that no one replaces it.
    """
    own = [entry.modified_at for entry in objects.list(key, limit=1) if entry.key == key]
    objects.delete(key)
    # Our last heartbeat tells the time by the clock of the store; that of this machine may be days ahead.
    for entry in objects.list(layout.RUNS) if own else ():
        if entry.modified_at < own[0] - _FORGOTTEN_AFTER_S:
            objects.delete(entry.key)
