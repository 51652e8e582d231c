"""The call that makes a container, so that exactly one is made, whatever happens to the call or to us."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.fields.properties import parse
from stackyard.provider.create_once import was_not_done
from stackyard.provider.guests import marked
from stackyard.provider.resources.container.blocks import block, is_clone, known
from stackyard.provider.resources.container.find import find_made
from stackyard.provider.resources.container.properties import beginning, properties
from stackyard.provider.vm_ids import says_taken, taken_id

if TYPE_CHECKING:
    from stackyard.provider.journal import Entry, JournalSubject
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["make", "note_task", "source_config"]

_ATTEMPTS = 5
# Whoever loses a number has seen another process win it, so that all get theirs in the end.
_NUMBERS = 1000
# The source of many clones is asked once.
_SOURCE_AGE_S = 30.0


async def make(work: Work, planned: Object, subject: JournalSubject) -> Entry:
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
            if is_open or not says_taken(err.detail):
                raise
            if wanted or attempt == _NUMBERS:
                raise await taken_id(work.client, vm_id, err.detail) from err
            work.session.ids.reject(vm_id)
    raise AssertionError("the last attempt raises")


async def _number(work: Work, wanted: int | None) -> int:
    if not wanted:
        return await work.session.ids.reserve(work.client, work.session.settings)
    try:
        # Were it taken, a lost answer could not be told from somebody else's guest.
        await work.client.get("/cluster/nextid", {"vmid": int(wanted)})
    except proxmox.RefusedError as err:
        if not says_taken(err.text):
            raise
        raise await taken_id(work.client, int(wanted), err.text) from err
    return int(wanted)


async def _make_once(work: Work, planned: Object, entry: Entry) -> Entry:
    if not is_clone(planned):
        path = f"/nodes/{entry.node}/lxc"
        params = {**properties(planned), **beginning(planned), "vmid": entry.vm_id}
        params["description"] = marked(params.get("description"), entry.token)
        timeout_s = float(planned["timeout_create"])
        return await _sent(work, entry, path, params, timeout_s=timeout_s)
    source = block(planned, "clone")
    node = source.get("node_name") or entry.node
    path = f"/nodes/{node}/lxc/{source['vm_id']}"
    root = parse(str((await source_config(work, planned)).get("rootfs", "")), "volume").get("volume", "")
    storage = source.get("datastore_id") or root.partition(":")[0]
    # Proxmox locks the source of a clone as well as the storage that it goes to.
    async with (
        work.session.clones.turn(node, f"guest {source['vm_id']}"),
        work.session.clones.turn(entry.node, storage),
    ):
        timeout_s = float(planned["timeout_clone"])
        made = await _sent(work, entry, f"{path}/clone", _copy(planned, entry), timeout_s=timeout_s)
        if made.upid:
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
        "description": marked(given.get("description"), entry.token),
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


async def _sent(work: Work, entry: Entry, path: str, params: dict[str, Any], *, timeout_s: float) -> Entry:
    """Send the call until it is known to have been received; the task goes to the journal."""
    was_lost = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            upid = await work.client.post(path, params)
        except (proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError) as err:
            # An error may have come from something between us and the node that has made it.
            is_certain = was_not_done(err) and not was_lost
            if not is_certain and await find_made(work, entry, timeout_s=timeout_s) is not None:
                return await work.session.journal.change(entry, upid=await _task_of(work, entry, path))
            if not isinstance(err, proxmox.AnswerLostError):
                await work.session.journal.close(entry)
                raise
            was_lost = True
            if attempt == _ATTEMPTS:
                raise
        else:
            return await work.session.journal.change(entry, upid=str(upid))
    return entry


async def note_task(work: Work, planned: Object, entry: Entry) -> Entry:
    """Write down the task that made what an entry stands for: from now on it tells whose the container is."""
    if entry.upid:
        return entry
    path = f"/nodes/{entry.node}/lxc"
    if is_clone(planned):
        source = block(planned, "clone")
        path = f"/nodes/{source.get('node_name') or entry.node}/lxc/{source['vm_id']}/clone"
    return await work.session.journal.change(entry, upid=await _task_of(work, entry, path))


async def _task_of(work: Work, entry: Entry, path: str) -> str:
    """Return the task that a call to a path started for an entry; empty when the node does not tell."""
    _, _, node, _, *source = path.split("/")
    # The task of a clone runs on the node of its source, under the number of that.
    vm_id, kind = (int(source[0]), "vzclone") if source else (entry.vm_id, "vzcreate")
    listed = await work.client.get(f"/nodes/{node}/tasks", {"vmid": vm_id, "source": "all"})
    found = [one for one in listed if one["type"] == kind]
    return str(max(found, key=lambda one: int(one["starttime"]))["upid"]) if found else ""
