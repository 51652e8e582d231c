"""Finding a container that a call of ours made or still makes, although its answer was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.guests import CONTAINER, Guest, carries, wait_until_made

if TYPE_CHECKING:
    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work

__all__ = ["find_made"]

# After one of these, a container is another one than before. A clone is a task of its source.
_MAKING = ("vzcreate", "vzrestore", "vzdestroy")


async def find_made(work: Work, entry: Entry, *, timeout_s: float) -> dict[str, Any] | None:
    """Return the configuration of what an entry stands for, once it is made; None when it is not there.

    Raises:
        HalfMadeError: It stays half-made, and nothing shows whose it is.
    """
    guest = Guest(work=work, node=entry.node, vm_id=entry.vm_id, kind=CONTAINER)
    config = await wait_until_made(guest, entry, timeout_s=timeout_s)
    if config is None:
        return None
    is_ours = carries(config, entry.token) or await _is_ours_still(work, entry)
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
