"""What a killed run was making: guests that the journal knows and the state does not, taken away again."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.guard.cluster import OWNER_TAG
from stackyard.render.references import guest_kind
from stackyard.state.guests import guests_of_state, list_indexed_vm_ids
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackyard.guard import Cluster, ClusterGuest, Owners
    from stackyard.path.run import Run
    from stackyard.provider.journal import Entry

__all__ = ["find_unfinished", "sweep_unfinished"]

_KINDS = {"vm": "qemu", "container": "lxc"}
_TASK_S = 600.0
# A guest that is still being created carries no mark yet, and no one else can have it.
_MAKING = ("create", "clone")


async def sweep_unfinished(run: Run, is_meant: Callable[[Entry], bool]) -> tuple[str, ...]:
    """Remove guests that a run was making when it was killed, and return what they were.

    Only what carries the mark of its entry in the journal is removed: anything else is someone else's.

    Args:
        run: The target, with nothing at work on it.
        is_meant: Whether the guest of an entry is to go.

    Raises:
        EncryptedStateError: The state cannot be looked into.
        ProxmoxError: One could not be removed.
    """
    if run.served is None:
        return ()
    journal, own = run.served.journal, run.resolved.target.state_name
    known = {guest.vm_id for guest in await asyncio.to_thread(guests_of_state, run.states, own)}
    managed = await asyncio.to_thread(read_managed, run.states, but=(own,))
    others = {vm_id for held in managed.holdings.values() for vm_id in list_indexed_vm_ids(held)}
    gone: list[str] = []
    for entry in journal.entries:
        kind = _KINDS.get(guest_kind(entry.subject.type_name))
        # What another state has was created by another run, whatever it is called.
        if kind is None or entry.vm_id in known or entry.vm_id in others or not is_meant(entry):
            continue
        if await _remove(run.client, entry, kind):
            gone.append(f"{entry.subject.name or 'a guest'} ({entry.vm_id} on {entry.node})")
        await journal.close(entry)
    return tuple(gone)


async def _remove(client: proxmox.Client, entry: Entry, kind: str) -> bool:
    if entry.upid:
        # Proxmox continues with what it was asked for, also when the client is gone.
        with contextlib.suppress(proxmox.TaskFailedError, proxmox.RefusedError, ValueError):
            await proxmox.wait_for(client, entry.upid, timeout_s=_TASK_S)
    node = await _node_of(client, entry)
    if node is None:
        return False
    path = f"/nodes/{quote(node)}/{kind}/{entry.vm_id}"
    config: dict[str, Any] = await client.get(f"{path}/config")
    if not _is_ours(config, entry):
        return False
    with contextlib.suppress(proxmox.RefusedError):
        await proxmox.wait_for(client, str(await client.post(f"{path}/status/stop")), timeout_s=_TASK_S)
    upid = await client.delete(path, {"purge": True, "destroy-unreferenced-disks": True})
    await proxmox.wait_for(client, str(upid), timeout_s=_TASK_S)
    return True


async def _node_of(client: proxmox.Client, entry: Entry) -> str | None:
    rows = await client.get("/cluster/resources", {"type": "vm"})
    return next((str(row["node"]) for row in rows if row["vmid"] == entry.vm_id), None)


async def find_unfinished(
    client: proxmox.Client, entries: Iterable[Entry], cluster: Cluster, owners: Owners
) -> tuple[Entry, ...]:
    """Return the entries of the journal whose guests are there and are ours.

    An entry alone proves nothing: someone else may have taken the id since. A guest is ours that carries the
    mark or the name of the entry, or that is still being created.

    Args:
        client: Speaks to the cluster.
        entries: The entries of the journal.
        cluster: What the cluster has.
        owners: What other states have there.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    there = {guest.vm_id: guest for guest in cluster.guests if guest.vm_id not in owners.states}
    pairs = [(entry, there[entry.vm_id]) for entry in entries if entry.vm_id in there]
    configs = await asyncio.gather(*(_config(client, guest) for _, guest in pairs))
    return tuple(
        entry
        for (entry, _), config in zip(pairs, configs, strict=True)
        if _is_ours(config, entry) or _has_name(config, entry) or config.get("lock") in _MAKING
    )


async def _config(client: proxmox.Client, guest: ClusterGuest) -> dict[str, Any]:
    try:
        found: dict[str, Any] = await client.get(
            f"/nodes/{quote(guest.node)}/{guest.kind}/{guest.vm_id}/config"
        )
    except proxmox.RefusedError:
        return {}
    return found


def _is_ours(config: dict[str, Any], entry: Entry) -> bool:
    """Return whether a guest is the one of an entry: it carries the token, or the name and our tag."""
    if config.get("vmgenid") == entry.token or entry.token in str(config.get("description", "")):
        return True
    return _has_name(config, entry) and OWNER_TAG in str(config.get("tags"))


def _has_name(config: dict[str, Any], entry: Entry) -> bool:
    name = config.get("name") or config.get("hostname")
    return bool(entry.subject.name) and name == entry.subject.name
