"""The run of `stackyard cluster health`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.bootstrap.changes.health import list_problems, wait_for_health
from stackyard.bootstrap.talos.wait import BootTimeoutError

if TYPE_CHECKING:
    from stackyard.bootstrap.changes.health import Problem
    from stackyard.cli.runs.clusters.opened import TalosCluster

__all__ = ["read_health"]


async def read_health(
    emit: events.Emit, opened: TalosCluster, *, wait_s: float, needs_kubernetes: bool
) -> tuple[Problem, ...]:
    """Return what is not well, at the latest after some seconds."""
    cluster, access = opened.cluster, opened.access
    if wait_s:
        with events.step(emit, "health", f"Checking {cluster.name}") as running:
            try:
                await wait_for_health(
                    cluster,
                    access,
                    running.waiting,
                    timeout_s=wait_s,
                    needs_kubernetes=needs_kubernetes,
                )
            except BootTimeoutError:
                # What is not well then is the result.
                running.log(f"waited {wait_s:.0f} s")
            else:
                return ()
    return await list_problems(cluster, access, needs_kubernetes=needs_kubernetes)
