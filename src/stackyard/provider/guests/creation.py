"""Finding a guest that a call of ours made or still makes, although its answer was lost.

A guest carries the token of its entry in the journal: from the call that makes it until it is finished at the
end of its description, a VM afterwards as its generation id.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.clients import proxmox
from stackyard.provider.create_once import HalfMadeError
from stackyard.provider.guests.guest import find_guest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.provider.guests.guest import Guest
    from stackyard.provider.journal import Entry

__all__ = ["carries", "marked", "wait_until_made"]

# The locks of a guest that a task makes, as a new one or as a clone.
_BEING_MADE = ("create", "clone")
_BACKOFF = Backoff(0.05, 2.0)


def marked(description: str | None, token: str) -> str:
    """Return a description that carries a token, which at first a guest can carry nowhere else."""
    return f"{(description or '').rstrip()}\n\nmade-by-stackyard: {token}".strip()


def carries(config: Mapping[str, Any], token: str) -> bool:
    """Tell whether a guest carries a token."""
    return config.get("vmgenid") == token or str(config.get("description", "")).rstrip().endswith(token)


async def wait_until_made(
    guest: Guest, entry: Entry, workers: Collection[str] = (), *, timeout_s: float
) -> dict[str, Any] | None:
    """Return the configuration of what an entry stands for, once no task makes it any more.

    Args:
        guest: The guest, on the node that it should be on.
        entry: What the journal says about it.
        workers: More nodes whose tasks may be making it: for a clone, that of its source.
        timeout_s: How long it may take.

    Returns:
        None when it is not on its node.

    Raises:
        HalfMadeError: It stays half-made, and nothing shows whose it is.
    """
    if entry.upid:
        # How it ended shows in what is there.
        with contextlib.suppress(proxmox.TaskFailedError, proxmox.RefusedError, ValueError):
            await proxmox.wait_for(guest.work.client, entry.upid, timeout_s=timeout_s)
    await guest.settle(timeout_s)
    deadline, pauses = time.monotonic() + timeout_s, iter(_BACKOFF)
    while True:
        config = await guest.find_config()
        if config is not None and config.get("lock") not in _BEING_MADE:
            return config
        found = await find_guest(guest.work, guest.vm_id, max_age_s=0) if config is None else None
        if config is None and (found is None or found["node"] == guest.node):
            return None
        nodes = {guest.node, *workers, *((str(found["node"]),) if found else ())}
        if time.monotonic() >= deadline or not await _is_at_work(guest, nodes):
            # It may have ended between the two questions.
            config = await guest.find_config()
            if config is not None and config.get("lock") in _BEING_MADE:
                noun = guest.kind.noun[0].upper() + guest.kind.noun[1:]
                who = f"{noun} {guest.vm_id} on {guest.node}"
                raise HalfMadeError(f"{who} has the lock {config['lock']!r}, and no task makes it.")
            return config
        await guest.work.client.pause(next(pauses))


async def _is_at_work(guest: Guest, nodes: set[str]) -> bool:
    """Tell whether a task could be the one that makes a guest; a clone's has the number of its source."""
    for node in nodes:
        path = f"/nodes/{proxmox.quoted(node)}/tasks"
        tasks = await guest.work.client.get(path, {"source": "active"})
        if any(task.get("type") in guest.kind.making and not task.get("endtime") for task in tasks or ()):
            return True
    return False
