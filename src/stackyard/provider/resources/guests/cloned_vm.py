"""`proxmox_cloned_vm`: a clone of which only what the configuration names is managed.

The rest it has from its source, and keeps. What is taken out of the configuration is left as it is; what is
to go is named in `delete`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.guests import Guest
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.guests.clone_rules import RULES, validate
from stackyard.provider.resources.guests.life import delete, find, stop
from stackyard.provider.resources.guests.managed import apply_managed, check_disks, read_managed
from stackyard.provider.resources.guests.rules import identify
from stackyard.provider.resources.guests.timeouts import limit, timeout_s
from stackyard.provider.resources.vm.clone import CloneRequest, bring_to_target, make_clone
from stackyard.provider.resources.vm.power import start_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

# Nobody knows what a VM was cloned from that was there before its state.
_UNKNOWN_SOURCE = dict.fromkeys(
    (
        "bandwidth_limit",
        "full",
        "pool_id",
        "retries",
        "snapshot_name",
        "source_node_name",
        "source_vm_id",
        "target_datastore",
        "target_format",
    )
)


async def _create(work: Work, planned: Object) -> Object:
    """Clone a VM, or finish the clone of an interrupted run, and change what the configuration names."""
    patience_s = timeout_s(planned, "create")
    async with limit(planned, "create") as restart:
        source = await _source_config(work, planned)
        await check_disks(work, planned, source)
        # Others that are cloned before it do not take its time.
        request = dataclasses.replace(_request(work, planned, source), on_turn=restart)
        made = await make_clone(work, {**planned, "vm_id": planned.get("id")}, request)
        try:
            state = {**planned, "id": made.guest.vm_id, "node_name": made.guest.node}
            work.keep(state)
            guest = await bring_to_target(made, request)
            # From here on it carries the token there, and the description that it is to have.
            more = {"vmgenid": made.entry.token, "description": request.description or None}
            await apply_managed(guest, planned, more=more, timeout_s=patience_s)
            await _settle_power(guest, planned, "create")
            return await _state(guest, state, await guest.config())
        finally:
            work.session.journal.leave(made.entry)


def _source(work: Work, planned: Object) -> Guest:
    clone = planned["clone"]
    node = str(clone.get("source_node_name") or planned["node_name"])
    return Guest(work=work, node=node, vm_id=int(clone["source_vm_id"]))


async def _source_config(work: Work, planned: Object) -> dict[str, Any]:
    path, snapshot = f"{_source(work, planned).path}/config", planned["clone"].get("snapshot_name")
    found: dict[str, Any] = await work.client.get(path, {"snapshot": snapshot} if snapshot else {})
    return found


def _request(work: Work, planned: Object, source: Mapping[str, Any]) -> CloneRequest:
    clone, description = planned["clone"], planned.get("description")
    return CloneRequest(
        source=_source(work, planned),
        target=str(planned["node_name"]),
        storage=str(clone.get("target_datastore") or ""),
        description=str(source.get("description") or "") if description is None else description,
        params={
            "full": clone.get("full"),
            "format": clone.get("target_format"),
            "snapname": clone.get("snapshot_name"),
            "pool": clone.get("pool_id"),
            "bwlimit": clone.get("bandwidth_limit"),
            "name": planned.get("name") or None,
        },
        timeout_s=timeout_s(planned, "create"),
        attempts=int(clone.get("retries") or 1),
    )


async def _settle_power(guest: Guest, planned: Object, operation: str) -> None:
    """Start or stop a clone, unless it is as planned."""
    if bool(planned.get("started")) == await guest.is_running():
        return
    if planned.get("started"):
        setting = f"timeouts.{operation}"
        await start_within(guest, timeout_s(planned, operation), setting=setting)
    else:
        await stop(guest, planned, operation)


async def _read(work: Work, state: Object) -> Object | None:
    """Return what is managed of a clone as it is; None when it is gone."""
    await work.session.journal.confirm(work.type_name, int(state["id"]))
    async with limit(state, "read"):
        guest = await find(work, state)
        config = None if guest is None else await guest.find_config()
        return None if guest is None or config is None else await _state(guest, state, config)


async def _state(guest: Guest, known: Object, config: Mapping[str, Any]) -> Object:
    place = {"id": guest.vm_id, "node_name": guest.node, "started": await guest.is_running()}
    return {**known, **read_managed(known, config), **place}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    """Change what the configuration names; what it does not name any more is left as it is."""
    async with limit(planned, "update"):
        guest = await find(work, prior) or Guest(work=work, node=str(prior["node_name"]), vm_id=prior["id"])
        await apply_managed(guest, planned, timeout_s=timeout_s(planned, "update"))
        await _settle_power(guest, planned, "update")
        return await _state(guest, planned, await guest.config())


def _plan(planned: PlanDraft) -> None:
    """Adjust a plan: nothing is replaced for a source that nobody knows, and no disk becomes smaller."""
    prior = planned.prior
    if prior is None:
        return
    if (prior.get("clone") or {}).get("source_vm_id") is None:
        planned.replace = [path for path in planned.replace if path[0] != "clone"]
    before, after = prior.get("disk") or {}, planned.values.get("disk")
    for slot, disk in after.items() if isinstance(after, dict) and not planned.replace else ():
        has, size = (before.get(slot) or {}).get("size_gb"), (disk or {}).get("size_gb")
        if isinstance(has, int) and isinstance(size, int) and size < has:
            raise AttributeValueError(
                f"Disk {slot} has {has} GiB, and a disk cannot be made smaller: {size} is too small.",
                ("disk",),
            )


RESOURCE = Resource(
    names=("proxmox_cloned_vm", "proxmox_virtual_environment_cloned_vm"),
    create=_create,
    read=_read,
    update=_update,
    delete=delete,
    identify=lambda given: {**identify(given), "clone": dict(_UNKNOWN_SOURCE)},
    rules=RULES,
    plan=_plan,
    validate=validate,
)
