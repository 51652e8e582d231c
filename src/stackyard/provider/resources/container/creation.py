"""The call that makes a container: from a template, or as a clone of another one."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import parse
from stackyard.provider.guests import (
    CONTAINER,
    CreatedGuest,
    Creation,
    Guest,
    left_on_failure,
    make_once,
    mark_description,
)
from stackyard.provider.resources.container.blocks import block, drop_unknown, is_clone
from stackyard.provider.resources.container.properties import properties, render_creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["make", "making_timeout_s", "source_config"]

# The source of many clones is asked once.
_SOURCE_AGE_S = 30.0


def making_timeout_s(planned: Object) -> float:
    """Return how long it may take until a container is made."""
    return float(planned["timeout_clone" if is_clone(planned) else "timeout_create"])


async def make(work: Work, planned: Object, *, on_turn: Callable[[], None]) -> CreatedGuest:
    """Make a container, or find the one that an earlier run made; its task is in the journal then.

    Args:
        work: The operation.
        planned: What is to be.
        on_turn: Called when no other clone is in its way any more.

    Raises:
        VmIdTakenError: Another guest has the number that was asked for.
        ProxmoxError: It was not made, and nothing is left of it.
    """
    if not is_clone(planned):
        return await _make(work, planned, None)
    source = _source(work, planned)
    root = parse(str((await source_config(work, planned)).get("rootfs", "")), "volume").get("volume", "")
    storage = block(planned, "clone").get("datastore_id") or root.partition(":")[0]
    # Proxmox locks the source of a clone as well as the storage that it goes to.
    async with (
        work.session.clones.turn(source.node, f"guest {source.vm_id}"),
        work.session.clones.turn(str(planned["node_name"]), storage),
    ):
        on_turn()
        made = await _make(work, planned, source)
        # How it ended is for whoever asks next to say.
        with left_on_failure(work, made.entry), contextlib.suppress(proxmox.TaskFailedError):
            if made.entry.upid:
                timeout_s = making_timeout_s(planned)
                await proxmox.wait_for(work.client, made.entry.upid, timeout_s=timeout_s)
    return made


def _source(work: Work, planned: Object) -> Guest:
    source = block(planned, "clone")
    node = str(source.get("node_name") or planned["node_name"])
    return Guest(work=work, node=node, vm_id=int(source["vm_id"]), kind=CONTAINER)


async def source_config(work: Work, planned: Object) -> dict[str, Any]:
    """Return the configuration of what a clone is made from."""
    path = f"{_source(work, planned).path}/config"
    config: dict[str, Any] = await work.client.get(path, max_age_s=_SOURCE_AGE_S)
    return config


async def _make(work: Work, planned: Object, source: Guest | None) -> CreatedGuest:
    async def send(entry: Entry) -> Any:
        if source is not None:
            return await work.client.post(f"{source.path}/clone", _copy(planned, entry))
        params = {**properties(planned), **render_creation(planned), "vmid": entry.vm_id}
        params["description"] = mark_description(params.get("description"), entry.token)
        return await work.client.post(f"/nodes/{proxmox.quote(entry.node)}/lxc", params)

    node = str(planned["node_name"])
    creation = Creation(
        kind=CONTAINER,
        node=node,
        worker=node if source is None else source.node,
        send=send,
        timeout_s=making_timeout_s(planned),
        waits=False,
    )
    hostname = block(planned, "initialization").get("hostname")
    made = await make_once(work, {**planned, "name": hostname}, creation)
    if made.entry.upid:
        return made
    with left_on_failure(work, made.entry):
        # The mark goes with the next change: from then on, the task tells whose the container is.
        upid = await _find_task(made.guest, source)
        return dataclasses.replace(made, entry=await work.session.journal.change(made.entry, upid=upid))


def _copy(planned: Object, entry: Entry) -> dict[str, Any]:
    given = drop_unknown(planned)
    source = block(given, "clone")
    is_elsewhere = source.get("node_name") not in (None, "", entry.node)
    return {
        "newid": entry.vm_id,
        "full": source.get("full") is not False,
        "hostname": block(given, "initialization").get("hostname") or None,
        "description": mark_description(given.get("description"), entry.token),
        "pool": given.get("pool_id") or None,
        "storage": source.get("datastore_id") or None,
        "target": entry.node if is_elsewhere else None,
    }


async def _find_task(guest: Guest, source: Guest | None) -> str:
    """Return the task that made a container; empty when the node does not tell."""
    # The task of a clone runs on the node of its source, under the number of that.
    of, kind = (guest, "vzcreate") if source is None else (source, "vzclone")
    listed = await of.work.client.get(of.tasks_path, {"vmid": of.vm_id, "source": "all"})
    found = [one for one in listed if one["type"] == kind]
    return str(max(found, key=lambda one: int(one["starttime"]))["upid"]) if found else ""
