"""`proxmox_sdn_applier`: puts pending changes of the SDN into force."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_APPLY_S = 300.0


async def _apply(work: Work) -> None:
    async def apply() -> None:
        upid = await work.client.put("/cluster/sdn")
        if upid:
            await proxmox.wait_for(work.client, upid, timeout_s=_APPLY_S)

    await work.session.commits.run("sdn", apply)


async def _create_applier(work: Work, planned: Object) -> Object:
    if planned["on_create"]:
        await _apply(work)
    return {**planned, "id": str(time.time_ns() // 1_000_000)}


async def _read_applier(_work: Work, state: Object) -> Object:
    return state


async def _delete_applier(work: Work, state: Object) -> None:
    if state["on_destroy"]:
        await _apply(work)


def _identify_applier(given_id: str) -> Object:
    raise ImportIdError("An applier is an act, not an object; there is nothing that could be imported.")


RESOURCE = Resource(
    names=("proxmox_sdn_applier", "proxmox_virtual_environment_sdn_applier"),
    create=_create_applier,
    read=_read_applier,
    delete=_delete_applier,
    identify=_identify_applier,
    rules={"on_create": Rule(default=True, replace=True), "on_destroy": Rule(default=True, replace=True)},
)
