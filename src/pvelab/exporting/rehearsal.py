"""Filling a lab with a document before anyone relies on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab import api as resources
from pvelab.faults.latency import Latency
from pvelab.runtime.lifecycle import InitialContent, Lifecycle
from pvelab.runtime.saved import SavedStates
from pvelab.seeds import parse_seed
from pvelab.server.dispatch import Dispatcher
from pvelab.server.routing import Table, collect
from pvelab.world.clock import LabClock
from pvelab.world.store import Store
from pvelab.world.world import assemble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.facts import Facts

__all__ = ["rehearse"]


async def rehearse(document: Mapping[str, Any], facts: Facts) -> tuple[dict[str, Any], dict[str, str]]:
    """Fill a lab that no one sees, and return the document without the calls that it refused.

    Args:
        document: The document of a seed.
        facts: What Proxmox declares.

    Returns:
        The document, and what was taken out with the reason.

    Raises:
        SeedError: The lab cannot be filled.
    """
    world = assemble(facts, Store(), LabClock(), Latency())
    try:
        dispatcher = Dispatcher(world, Table(facts, collect(resources)))
        seed = parse_seed(dict(document))
        lifecycle = Lifecycle(
            world, dispatcher, InitialContent(seed=seed), fingerprint="", saved=SavedStates(None)
        )
        refused = await lifecycle.rehearse(seed)
        await world.tasks.close()
        await world.machines.close()
    finally:
        world.blobs.close()
    calls = [call for number, call in enumerate(document.get("calls", ())) if number not in refused]
    reasons = {
        f"{seed.calls[number].method} {seed.calls[number].path} ({number + 1})": reason
        for number, reason in refused.items()
    }
    return {**document, "calls": calls}, reasons
