"""One process at a time works on a pull request; the next one continues where another one was killed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import time
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import BusyError
from stackyard.clients.objects import LeaseLostError, LeaseWatch, acquire, read_lease, watch
from stackyard.clients.objects.base import StoreBusyError, StoreError
from stackyard.clients.objects.heartbeat import keep_alive
from stackyard.clients.objects.holders import describe_process
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.objects import Lease, Objects
    from stackyard.gitops.context import GitopsContext

__all__ = ["PullBusyError", "hold_pull"]

# A worker that is silent for this long was killed, or is cut off.
_PROMISE_S = 30.0
_LOOK_EVERY_S = 2.0


class PullBusyError(BusyError):
    """Another process works on the same pull request for longer than is waited."""

    code = "E-GITOPS-BUSY"
    summary = "Another process works on this pull request"
    default_remedy = "Wait for its end; `stackyard runs list` shows what runs."


@contextlib.asynccontextmanager
async def hold_pull(
    context: GitopsContext, repository: str, number: int, *, target: str = "", wait_s: float = 3600.0
) -> AsyncIterator[None]:
    """Let no other process work on a pull request, or on one target of it, for the length of a block.

    Args:
        context: What the work needs.
        repository: `owner/name`.
        number: The pull request.
        target: The target; empty for the whole, which a process with a target does not wait for.
        wait_s: How long to wait for another one.

    Raises:
        PullBusyError: Another process has it for longer than that.
        LeaseLostError: We were silent for so long that another one took over; the block was stopped.
        StoreError: The store cannot be used.
    """
    key = layout.gitops(repository, "leases", f"{number}/{target}" if target else str(number))
    with contextlib.closing(await asyncio.to_thread(context.store.open)) as objects:
        lease = await _acquire(context, objects, key, wait_s)
        try:
            async with _stopping(lease):
                yield
        finally:
            with contextlib.suppress(StoreError, StoreBusyError):
                await asyncio.to_thread(lease.release)


@contextlib.asynccontextmanager
async def _stopping(lease: Lease) -> AsyncIterator[None]:
    """Stop the block once the lease no longer protects it."""
    task, lost = asyncio.current_task(), list[str]()

    def stop(reason: str) -> None:
        lost.append(reason)
        if task is not None:
            task.cancel()

    try:
        async with keep_alive(lease, stop):
            yield
    except asyncio.CancelledError:
        if not lost or task is None:
            raise
        task.uncancel()
        raise LeaseLostError(lost[0]) from None


async def _acquire(context: GitopsContext, objects: Objects, key: str, wait_s: float) -> Lease:
    seen, until, is_told = LeaseWatch(), time.monotonic() + wait_s, False
    take = functools.partial(
        acquire,
        objects,
        key,
        owner=f"{socket.gethostname()} pid {os.getpid()}",
        promise_s=_PROMISE_S,
        facts=describe_process(),
        watch=seen,
    )
    with watch(objects, key) as changes:
        while True:
            lease = await asyncio.to_thread(take)
            if lease is not None:
                return lease
            known = await asyncio.to_thread(read_lease, objects, key)
            holder = "another process" if known is None else known.owner
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise PullBusyError(f"{key} is held by {holder}.")
            if not is_told:
                context.emit(events.StepWaiting(step="pull request", waiting_for=f"{holder} to end"))
                is_told = True
            await asyncio.to_thread(changes.wait, min(left_s, _LOOK_EVERY_S))
