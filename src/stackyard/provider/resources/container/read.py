"""Reading a container: its configuration, whether it runs, and its addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import list_numbered
from stackyard.provider.guests import CONTAINER, find_guest
from stackyard.provider.plan import IMPORTED
from stackyard.provider.resources.container.blocks import block, guest_of, has
from stackyard.provider.resources.container.describe import describe
from stackyard.provider.resources.container.networks import expects_address
from stackyard.provider.resources.container.power import wait_for_addresses

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["read", "read_made"]


async def read(work: Work, state: Object) -> Object | None:
    """Return the state of a container as it is now, None when it is gone."""
    config = await guest_of(work, state).find_config()
    if config is None:
        found = await find_guest(work, int(state["id"]), CONTAINER)
        if found is None or found["node"] == state["node_name"]:
            return None
        # Somebody has moved it; taken for gone, it would be made a second time.
        return await read(work, {**state, "node_name": str(found["node"])})
    await work.session.journal.confirm(work.type_name, int(state["id"]))
    if state.get("pool_id") or work.private.get(IMPORTED):
        found = await find_guest(work, int(state["id"]), CONTAINER) or {}
        state = {**state, "pool_id": str(found.get("pool") or "")}
    return await _describe(work, state, config, patience_s=0.0)


async def read_made(work: Work, state: Object) -> Object:
    """Return the state of a container that was just made or changed, with the addresses that it gets."""
    config = await guest_of(work, state).find_config()
    if config is None:
        return state
    return await _describe(work, state, config, patience_s=None)


async def _describe(work: Work, state: Object, config: dict[str, Any], *, patience_s: float | None) -> Object:
    described = describe(config, state)
    described["started"] = await guest_of(work, state).is_listed_running()
    described |= {"ipv4": {}, "ipv6": {}}
    if not described["started"] or not list_numbered(config, "net"):
        return described
    if patience_s is not None or not (expects_address(config) or has(state, "wait_for_ip")):
        return {**described, **await wait_for_addresses(work, state, patience_s=0.0)}
    found = await wait_for_addresses(work, state)
    missing = [family for family in found if block(state, "wait_for_ip").get(family) and not found[family]]
    if missing:
        work.warn(
            "A container has no address yet",
            f"Container {state['id']} runs, and {' and '.join(missing)} did not come in time.",
        )
    return {**described, **found}
