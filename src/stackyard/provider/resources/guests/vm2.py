"""`proxmox_vm`: a VM of which everything in the configuration is managed, and nothing is assumed."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.guests import VM, Creation, Guest, make_once
from stackyard.provider.kinds import Resource
from stackyard.provider.resources.guests.hardware import (
    EMPTY_DRIVE,
    hardware_params,
    own_params,
    read_hardware,
    read_own,
)
from stackyard.provider.resources.guests.life import delete, find
from stackyard.provider.resources.guests.rules import RULES, identify
from stackyard.provider.resources.guests.spelling import keep_spelling
from stackyard.provider.resources.guests.timeouts import limit, timeout_s
from stackyard.provider.resources.vm.migrate import migrate
from stackyard.provider.resources.vm.power import make_template
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.guests import CreatedGuest
    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "describe"]

_NAME = r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
_DESCRIBED = ("cdrom", "cpu", "rng", "vga")


def describe(config: Mapping[str, Any]) -> Object:
    """Return the attributes that a configuration of Proxmox says."""
    hardware = read_hardware(config)
    return {
        **read_own(config),
        **{part: hardware[part] for part in _DESCRIBED},
        "template": None if config.get("template") is None else str(config["template"]) == "1",
    }


def _params(state: Object) -> dict[str, Any]:
    return {**own_params(state), **hardware_params(state)}


async def _create(work: Work, planned: Object) -> Object:
    """Make a VM, or finish the one that an interrupted run made."""
    async with limit(planned, "create"):
        made = await _make(work, planned)
        guest, state = made.guest, {**planned, "id": made.guest.vm_id, "node_name": made.guest.node}
        work.keep(state)
        try:
            if made.is_taken_over:
                await _change(guest, describe(await guest.config()), planned)
            if planned.get("template"):
                await make_template(guest, planned)
            return _state(guest, state, await guest.config())
        finally:
            work.session.journal.leave(made.entry)


async def _make(work: Work, planned: Object) -> CreatedGuest:
    node = str(planned["node_name"])

    async def send(entry: Entry) -> Any:
        params = {**_params(planned), "vmid": entry.vm_id, "vmgenid": entry.token}
        return await work.client.post(f"/nodes/{proxmox.quote(node)}/qemu", params)

    creation = Creation(
        kind=VM, node=node, worker=node, send=send, timeout_s=max(0.0, timeout_s(planned, "create"))
    )
    return await make_once(work, {**planned, "vm_id": planned.get("id")}, creation)


async def _read(work: Work, state: Object) -> Object | None:
    """Return the state of a VM as it is; None when it is gone."""
    await work.session.journal.confirm(work.type_name, int(state["id"]))
    async with limit(state, "read"):
        guest = await find(work, state)
        config = None if guest is None else await guest.find_config()
    return None if guest is None or config is None else _state(guest, state, config)


def _state(guest: Guest, known: Object, config: Mapping[str, Any]) -> Object:
    found = {name: keep_spelling(known.get(name), value) for name, value in describe(config).items()}
    # There are some tags or none; that nothing is said of them is for a configuration.
    return {**known, **found, "tags": found["tags"] or [], "id": guest.vm_id, "node_name": guest.node}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    """Change a VM in place, and move it to the node where it is to be."""
    async with limit(planned, "update"):
        there = await find(work, prior) or Guest(work=work, node=str(prior["node_name"]), vm_id=prior["id"])
        target, patience_s = str(planned["node_name"]), timeout_s(planned, "update")
        guest = await migrate(there, target, timeout_s=patience_s, setting="timeouts.update")
        work.keep({**prior, "node_name": guest.node})
        await _change(guest, prior, planned)
        return _state(guest, planned, await guest.config())


async def _change(guest: Guest, prior: Object, planned: Object) -> None:
    """Set what differs, and unset what a configuration leaves out."""
    old, new = _params(prior), _params(planned)
    await guest.set(
        {key: value for key, value in new.items() if old.get(key) != value},
        delete=[key for key in old if key not in new],
    )


def _plan(planned: PlanDraft) -> None:
    """Adjust a plan: that a VM is no template may be said or not."""
    prior = planned.prior or {}
    if not prior.get("template") and planned.values.get("template") in (None, False):
        with contextlib.suppress(ValueError):
            planned.replace.remove(("template",))


RESOURCE = Resource(
    names=("proxmox_vm", "proxmox_virtual_environment_vm2"),
    create=_create,
    read=_read,
    update=_update,
    delete=delete,
    identify=identify,
    rules={
        **RULES,
        "cdrom.file_id": dataclasses.replace(RULES["cdrom.file_id"], default=EMPTY_DRIVE),
        "delete_unreferenced_disks_on_destroy": Rule(default=True),
        "name": Rule(check=matches(_NAME, "be a valid host name")),
        "template": Rule(replace=True),
    },
    plan=_plan,
)
