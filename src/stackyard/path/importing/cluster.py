"""What there is: the guests of a cluster, and the configuration of those that are meant."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.path.importing.configuration import TranslatedGuest, Unsupported
from stackyard.path.importing.container import translate_container
from stackyard.path.importing.protection import list_replications, read_firewall
from stackyard.path.importing.vm import translate_vm

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from stackyard.clients.proxmox import Client

__all__ = ["ClusterListing", "list_cluster", "translate"]

_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterListing:
    """What a cluster lists.

    Attributes:
        nodes: Its nodes, as Proxmox calls them.
        online: Those that answer.
        guests: Its guests.
    """

    nodes: frozenset[str]
    online: frozenset[str]
    guests: tuple[Mapping[str, Any], ...]


async def list_cluster(client: Client) -> ClusterListing:
    """Return what a cluster has.

    Raises:
        ProxmoxError: It does not answer, or not to us.
    """
    rows = await client.get("/cluster/resources")
    nodes = [row for row in rows if row["type"] == "node"]
    return ClusterListing(
        nodes=frozenset(row["node"] for row in nodes),
        online=frozenset(row["node"] for row in nodes if row.get("status") == "online"),
        guests=tuple(row for row in rows if row["type"] in ("qemu", "lxc")),
    )


async def translate(
    client: Client, listed: ClusterListing, chosen: Sequence[Mapping[str, Any]], left_alone: Collection[str]
) -> list[TranslatedGuest]:
    """Return guests in terms of the model, each with everything that stands against it.

    Args:
        client: Speaks to the cluster.
        listed: What it has.
        chosen: The guests that are meant.
        left_alone: Keys of configurations that stay outside of everything.

    Raises:
        ProxmoxError: It does not answer, or not to us.
    """
    slots = asyncio.Semaphore(_AT_ONCE)
    replications = {} if "replication" in left_alone else await list_replications(client)

    async def one(row: Mapping[str, Any]) -> TranslatedGuest:
        if row["node"] not in listed.online:
            return _unreachable(row)
        async with slots:
            config = await client.get(f"/nodes/{quote(row['node'])}/{row['type']}/{row['vmid']}/config")
            firewall = {} if "firewall" in left_alone else await read_firewall(client, row)
        read = translate_vm if row["type"] == "qemu" else translate_container
        whole = {**row, "firewall": firewall, "replications": replications.get(int(row["vmid"]), ())}
        return read(whole, config, left_alone)

    return list(await asyncio.gather(*(one(row) for row in chosen)))


def _unreachable(row: Mapping[str, Any]) -> TranslatedGuest:
    lack = Unsupported(key="node", text=f"{row['node']} is offline, and nobody else knows its configuration")
    return TranslatedGuest(
        vm_id=int(row["vmid"]),
        name=str(row.get("name") or row["vmid"]),
        node=row["node"],
        guest=None,
        lacks=(lack,),
    )
