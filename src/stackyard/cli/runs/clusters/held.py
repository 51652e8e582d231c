"""One run at a time works on a cluster: the lock of it, and the store that has its record."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.bootstrap.boot_record import hold_cluster
from stackyard.path.clusters.source import ClusterSource
from stackyard.path.stacks.backend import DEFAULT_WORKSPACE
from stackyard.path.target import Target
from stackyard.sources.cluster.kind import CLUSTER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.cli.session import Session
    from stackyard.clients.objects import Objects

__all__ = ["hold", "state_of"]

_LOCK_WAIT_S = 600.0


@contextlib.asynccontextmanager
async def hold(
    session: Session, name: str, *, doing: str, wait_s: float | None = None
) -> AsyncIterator[Objects]:
    """Let no other run work on a cluster, and give the store that says so.

    Raises:
        ClusterBusyError: Another run works on it for longer than is waited.
    """
    store = ClusterSource.find().store
    waits_s = _LOCK_WAIT_S if wait_s is None else wait_s
    with contextlib.closing(await asyncio.to_thread(store.open)) as objects:
        async with hold_cluster(objects, state_of(name), doing=doing, wait_s=waits_s, emit=session.emit):
            yield objects


def state_of(name: str) -> str:
    """Return the name of the state of a cluster."""
    return Target(kind=CLUSTER, name=name, node=DEFAULT_WORKSPACE).state_name
