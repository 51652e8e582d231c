"""The call that makes a container, so that exactly one is made, whatever happens to the call or to us."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.errors import InvalidInputError, StackyardError
from stackyard.provider.resources.container.blocks import block, is_clone, known
from stackyard.provider.resources.container.marks import is_marked, marked
from stackyard.provider.resources.container.properties import beginning, properties
from stackyard.provider.resources.container.tasks import wait_for_others
from stackyard.provider.resources.container.texts import split

if TYPE_CHECKING:
    from stackyard.provider.journal import Entry, Subject
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["VmIdTakenError", "find_made", "make", "source_config"]

_ATTEMPTS = 5
# Whoever loses a number has seen another process win it, so that all get theirs in the end.
_NUMBERS = 1000
# The source of many clones is asked once.
_SOURCE_AGE_S = 30.0
# After one of these, a container is another one than before. A clone is a task of its source.
_MAKING = ("vzcreate", "vzrestore", "vzdestroy")


class VmIdTakenError(InvalidInputError):
    """A container asks for a vm id that another guest of the cluster has."""

    code = "E-PROVIDER-VM-ID-TAKEN"
    summary = "The vm id is taken"
    default_remedy = "Choose another vm_id or leave it out, or import the guest that has it."


async def make(work: Work, planned: Object, subject: Subject) -> Entry:
    """Make a container, with a number that is free, and return its entry in the journal.

    Raises:
        VmIdTakenError: Another guest has the number that was asked for.
        ProxmoxError: It was not made, and nothing is left of it.
    """
    wanted = known(planned["vm_id"])
    for attempt in range(1, _NUMBERS + 1):
        vm_id = await _number(work, wanted)
        entry = await work.session.journal.begin(subject, node=str(planned["node_name"]), vm_id=vm_id)
        try:
            return await _make_once(work, planned, entry)
        except StackyardError as err:
            work.session.journal.leave(entry)
            is_open = entry in work.session.journal.entries
            if is_open or wanted or attempt == _NUMBERS or "already exists" not in err.detail:
                raise
            work.session.ids.reject(vm_id)
    raise AssertionError("the last attempt raises")


async def _number(work: Work, wanted: int | None) -> int:
    if not wanted:
        return await work.session.ids.reserve(work.client, work.session.settings)
    try:
        # Were it taken, a lost answer could not be told from somebody else's guest.
        await work.client.get("/cluster/nextid", {"vmid": int(wanted)})
    except proxmox.RefusedError as err:
        if "already exists" not in err.text:
            raise
        raise await _taken(work, int(wanted)) from err
    return int(wanted)


async def _taken(work: Work, vm_id: int) -> VmIdTakenError:
    listed: list[dict[str, Any]] = await work.client.get("/cluster/resources", {"type": "vm"})
    guest = next((one for one in listed if one.get("vmid") == vm_id), {})
    node, name = guest.get("node", "a node"), guest.get("name", "a guest")
    remedy = f"Choose another vm_id or leave it out; to take over a container, import {node}/{vm_id}."
    return VmIdTakenError(f"The vm id {vm_id} is taken: {name} on {node} has it.", remedy=remedy)


async def _make_once(work: Work, planned: Object, entry: Entry) -> Entry:
    if not is_clone(planned):
        path = f"/nodes/{entry.node}/lxc"
        params = {**properties(planned), **beginning(planned), "vmid": entry.vm_id}
        params["description"] = marked(params.get("description"), entry)
        return await _sent(work, entry, path, params)
    source = block(planned, "clone")
    node = source.get("node_name") or entry.node
    path = f"/nodes/{node}/lxc/{source['vm_id']}"
    root = split(str((await source_config(work, planned)).get("rootfs", "")), "volume").get("volume", "")
    storage = source.get("datastore_id") or root.partition(":")[0]
    # Proxmox locks the source of a clone as well as the storage that it goes to.
    async with (
        work.session.clones.turn(node, f"guest {source['vm_id']}"),
        work.session.clones.turn(entry.node, storage),
    ):
        made = await _sent(work, entry, f"{path}/clone", _copy(planned, entry))
        if made.upid:
            timeout_s = float(planned["timeout_clone"])
            # How it ended is for whoever asks next to say.
            with contextlib.suppress(proxmox.TaskFailedError):
                await proxmox.wait_for(work.client, made.upid, timeout_s=timeout_s)
        return made


def _copy(planned: Object, entry: Entry) -> dict[str, Any]:
    given = known(planned)
    source = block(given, "clone")
    is_elsewhere = source.get("node_name") not in (None, "", entry.node)
    return {
        "newid": entry.vm_id,
        "full": source.get("full") is not False,
        "hostname": block(given, "initialization").get("hostname") or None,
        "description": marked(given.get("description"), entry),
        "pool": given.get("pool_id") or None,
        "storage": source.get("datastore_id") or None,
        "target": entry.node if is_elsewhere else None,
    }


async def source_config(work: Work, planned: Object) -> dict[str, Any]:
    """Return the configuration of what a clone is made from."""
    source = block(planned, "clone")
    path = f"/nodes/{source.get('node_name') or planned['node_name']}/lxc/{source['vm_id']}/config"
    config: dict[str, Any] = await work.client.get(path, max_age_s=_SOURCE_AGE_S)
    return config


async def _sent(work: Work, entry: Entry, path: str, params: dict[str, Any]) -> Entry:
    """Send the call until it is known to have been received; the task goes to the journal."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            upid = await work.client.post(path, params)
        except (proxmox.AnswerLostError, proxmox.RefusedError) as err:
            # An error may have come from something between us and the node that has made it.
            if await find_made(work, entry) is not None:
                return await work.session.journal.change(entry, upid=await _task_of(work, entry, path))
            if isinstance(err, proxmox.RefusedError):
                await work.session.journal.close(entry)
                raise
            if attempt == _ATTEMPTS:
                raise
        else:
            return await work.session.journal.change(entry, upid=str(upid))
    return entry


async def _task_of(work: Work, entry: Entry, path: str) -> str:
    """Return the task that a call to a path started for an entry; empty when the node does not tell."""
    _, _, node, _, *source = path.split("/")
    # The task of a clone runs on the node of its source, under the number of that.
    vm_id, kind = (int(source[0]), "vzclone") if source else (entry.vm_id, "vzcreate")
    listed = await work.client.get(f"/nodes/{node}/tasks", {"vmid": vm_id, "source": "all"})
    found = [one for one in listed if one["type"] == kind]
    return str(max(found, key=lambda one: int(one["starttime"]))["upid"]) if found else ""


async def find_made(work: Work, entry: Entry) -> dict[str, Any] | None:
    """Return the configuration of what an entry stands for, once it is made; None when it is not there."""
    path = f"/nodes/{entry.node}/lxc/{entry.vm_id}/config"
    try:
        await work.client.get(path)
        await wait_for_others(work, entry.node, entry.vm_id, timeout_s=work.client.connection.patience_s)
        config: dict[str, Any] = await work.client.get(path)
    except proxmox.MissingError:
        return None
    is_ours = is_marked(config.get("description"), entry) or await _is_ours_still(work, entry)
    return config if is_ours else None


async def _is_ours_still(work: Work, entry: Entry) -> bool:
    """Tell whether the task that made our container ended well, and nobody has made another one since."""
    if not entry.upid:
        return False
    try:
        await proxmox.wait_for(work.client, entry.upid, timeout_s=work.client.connection.patience_s)
    except proxmox.ProxmoxError:
        return False
    listed = await work.client.get(f"/nodes/{entry.node}/tasks", {"vmid": entry.vm_id, "source": "all"})
    since = int(entry.upid.split(":")[4], 16)
    others = (one for one in listed if one["type"] in _MAKING and one["upid"] != entry.upid)
    return all(int(one["starttime"]) <= since for one in others)
