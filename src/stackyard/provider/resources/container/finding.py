"""Finding a container that a call of ours made or still makes, although its answer was lost."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.creating import HalfMadeError
from stackyard.provider.resources.container.marks import is_marked
from stackyard.provider.resources.container.tasks import wait_for_others

if TYPE_CHECKING:
    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work

__all__ = ["find_made"]

# The lock of a container that a task makes, as a new one or as a clone.
_BEING_MADE = "create"
_MAKING_TASKS = ("vzcreate", "vzclone", "vzrestore")
# After one of these, a container is another one than before. A clone is a task of its source.
_MAKING = ("vzcreate", "vzrestore", "vzdestroy")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


async def find_made(work: Work, entry: Entry, *, timeout_s: float) -> dict[str, Any] | None:
    """Return the configuration of what an entry stands for, once it is made; None when it is not there.

    Raises:
        HalfMadeError: It stays half-made, and nothing shows whose it is.
    """
    if entry.upid:
        # How it ended shows in what is there.
        with contextlib.suppress(proxmox.TaskFailedError, proxmox.RefusedError, ValueError):
            await proxmox.wait_for(work.client, entry.upid, timeout_s=timeout_s)
    await wait_for_others(work, entry.node, entry.vm_id, timeout_s=timeout_s)
    config = await _wait_for_lock(work, entry, timeout_s)
    if config is None:
        return None
    is_ours = is_marked(config.get("description"), entry) or await _is_ours_still(work, entry)
    return config if is_ours else None


async def _wait_for_lock(work: Work, entry: Entry, timeout_s: float) -> dict[str, Any] | None:
    """Wait while a task makes the container: that of a clone has the number of its source, and its node.

    Returns:
        Its configuration; None when it is not on its node.
    """
    deadline, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        config, node = await _config(work, entry), await _node_of(work, entry)
        if config is not None and config.get("lock") != _BEING_MADE:
            return config
        if config is None and node in (None, entry.node):
            return None
        if time.monotonic() >= deadline or not await _is_at_work(work, {entry.node, node or entry.node}):
            config = await _config(work, entry)
            if config is not None and config.get("lock") == _BEING_MADE:
                where = f"Container {entry.vm_id} on {entry.node}"
                raise HalfMadeError(f"{where} has the lock {_BEING_MADE!r}, and no task makes it.")
            return config
        await work.client.pause(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


async def _config(work: Work, entry: Entry) -> dict[str, Any] | None:
    path = f"/nodes/{proxmox.quoted(entry.node)}/lxc/{entry.vm_id}/config"
    try:
        found: dict[str, Any] = await work.client.get(path)
    except proxmox.MissingError:
        return None
    return found


async def _node_of(work: Work, entry: Entry) -> str | None:
    listed = await work.client.get("/cluster/resources", {"type": "vm"})
    return next((str(one["node"]) for one in listed if one.get("vmid") == entry.vm_id), None)


async def _is_at_work(work: Work, nodes: set[str]) -> bool:
    for node in nodes:
        listed = await work.client.get(f"/nodes/{proxmox.quoted(node)}/tasks", {"source": "active"})
        if any(task.get("type") in _MAKING_TASKS and not task.get("endtime") for task in listed or ()):
            return True
    return False


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
