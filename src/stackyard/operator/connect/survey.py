"""Reading a cluster for the first time: nodes, datastores, bridges, images, guests, and what is hidden."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import usable_address
from stackyard.clients import proxmox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ClusterSeen", "DatastoreSeen", "NodeSeen", "read_cluster"]

# The one that is served, where there is it, before that which every node has.
_SERVED = ("pveproxy-ssl.pem", "pve-ssl.pem")
_IMAGES = ("import", "iso", "vztmpl")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatastoreSeen:
    """A datastore as a node sees it: its name, its type, what it takes, and whether it can be used."""

    name: str
    type: str
    content: tuple[str, ...]
    is_active: bool
    is_shared: bool = False

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "name": self.name,
            "type": self.type,
            "content": list(self.content),
            "active": self.is_active,
            "shared": self.is_shared,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node.

    Attributes:
        name: What Proxmox calls it.
        is_online: Whether it is up.
        is_asked: Whether it is the one that answers at the address that was given.
        ip: Its address in the cluster; None if that is hidden.
        fingerprint: The SHA-256 of its own certificate; None if that is hidden.
        datastores: Its datastores, as far as they can be seen.
        bridges: Its bridges.
        images: Disk images, ISO images and container templates on its datastores, by their volume.
    """

    name: str
    is_online: bool
    is_asked: bool
    ip: str | None = None
    fingerprint: str | None = None
    datastores: tuple[DatastoreSeen, ...] = ()
    bridges: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "name": self.name,
            "online": self.is_online,
            "ip": self.ip,
            "fingerprint": self.fingerprint,
            "datastores": [one.document() for one in self.datastores],
            "bridges": list(self.bridges),
            "images": list(self.images),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """A cluster, or a node alone.

    Attributes:
        version: The version of Proxmox VE.
        name: The name of the cluster; empty for a node alone, or where that is hidden.
        nodes: Its nodes, by name.
        is_quorate: Whether enough nodes are up for changes; True where that is hidden.
        guests: How many guests there are, templates not counted.
        templates: The names of the templates.
        hidden: What could not be read, each with the reason.
    """

    version: str
    name: str
    nodes: tuple[NodeSeen, ...]
    is_quorate: bool
    guests: int
    templates: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "version": self.version,
            "name": self.name or None,
            "quorate": self.is_quorate,
            "nodes": [node.document() for node in self.nodes],
            "guests": self.guests,
            "templates": list(self.templates),
            "hidden": list(self.hidden),
        }


@dataclass(slots=True)
class _Reader:
    """Reads, and keeps a note of what it may not read."""

    client: proxmox.Client
    hidden: list[str] = field(default_factory=list)

    async def read(self, path: str, what: str, params: Mapping[str, str] | None = None) -> Any:
        """Return an answer; None where Proxmox refuses it."""
        try:
            return await self.client.get(path, params or {})
        except proxmox.LoginRefusedError:
            raise
        except proxmox.RefusedError as err:
            self.hidden.append(f"{what}: {err.text}")
            return None


async def read_cluster(client: proxmox.Client, *, pinned: str | None = None) -> ClusterSeen:
    """Read a cluster; what may not be read is noted, not an error.

    Args:
        client: Is logged in.
        pinned: The fingerprint of the server that answers, to tell which node it is.

    Raises:
        ProxmoxError: It does not answer.
    """
    reader = _Reader(client)
    version = await reader.read("/version", "the version")
    rows: Sequence[Mapping[str, Any]] = await reader.read("/nodes", "the nodes") or []
    status = await reader.read("/cluster/status", "the addresses of nodes and the name of the cluster") or []
    resources = await reader.read("/cluster/resources", "guests", {"type": "vm"}) or []
    asked = _find_asked(rows, status, pinned)
    nodes = await asyncio.gather(*(_read_node(reader, row, status, asked) for row in rows))
    guests = [row for row in resources if row.get("type") in ("qemu", "lxc")]
    itself: Mapping[str, Any] = next((row for row in status if row.get("type") == "cluster"), {})
    return ClusterSeen(
        version=str((version or {}).get("version", "")),
        name=str(itself.get("name", "")),
        is_quorate=bool(itself.get("quorate", 1)),
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        guests=sum(not row.get("template") for row in guests),
        templates=tuple(sorted(str(row.get("name", row["vmid"])) for row in guests if row.get("template"))),
        hidden=tuple(reader.hidden),
    )


def _find_asked(
    rows: Sequence[Mapping[str, Any]], status: Sequence[Mapping[str, Any]], pinned: str | None
) -> str | None:
    """Return the node that answers our calls: it says so itself, is alone, or has the pinned certificate."""
    local = next((str(row["name"]) for row in status if row.get("type") == "node" and row.get("local")), None)
    if local is not None or len(rows) == 1:
        return local or str(rows[0]["node"])
    fitting = [str(row["node"]) for row in rows if pinned and row.get("ssl_fingerprint") == pinned]
    return fitting[0] if len(fitting) == 1 else None


async def _read_node(
    reader: _Reader, row: Mapping[str, Any], status: Sequence[Mapping[str, Any]], asked: str | None
) -> NodeSeen:
    name = str(row["node"])
    known = next((one for one in status if one.get("type") == "node" and one.get("name") == name), {})
    seen: dict[str, Any] = {
        "name": name,
        "is_online": row.get("status") == "online",
        "is_asked": name == asked,
        "ip": usable_address(known.get("ip")),
    }
    fingerprint = str(row["ssl_fingerprint"]) if row.get("ssl_fingerprint") else None
    if not seen["is_online"]:
        return NodeSeen(**seen, fingerprint=fingerprint)
    base = f"/nodes/{proxmox.quote(name)}"
    stores = await reader.read(f"{base}/storage", f"the datastores of {name}") or []
    bridges = await reader.read(f"{base}/network", f"the bridges of {name}", {"type": "any_bridge"}) or []
    certificates = await reader.read(f"{base}/certificates/info", f"the certificates of {name}") or []
    datastores = tuple(sorted(map(_read_datastore, stores), key=lambda one: one.name))
    return NodeSeen(
        **seen,
        fingerprint=_served_fingerprint(certificates) or fingerprint,
        datastores=datastores,
        bridges=tuple(sorted(str(one["iface"]) for one in bridges if "iface" in one)),
        images=await _read_images(reader, name, datastores),
    )


def _served_fingerprint(rows: Sequence[Mapping[str, Any]]) -> str | None:
    by_name = {str(row.get("filename")): row.get("fingerprint") for row in rows}
    return next((str(by_name[name]) for name in _SERVED if by_name.get(name)), None)


def _read_datastore(row: Mapping[str, Any]) -> DatastoreSeen:
    return DatastoreSeen(
        name=str(row["storage"]),
        type=str(row.get("type", "")),
        content=tuple(sorted(word for word in str(row.get("content", "")).split(",") if word)),
        is_active=bool(row.get("active", 1)) and bool(row.get("enabled", 1)),
        is_shared=bool(row.get("shared")),
    )


async def _read_images(reader: _Reader, node: str, datastores: Sequence[DatastoreSeen]) -> tuple[str, ...]:
    found: list[str] = []
    for store in datastores:
        kinds = [kind for kind in _IMAGES if kind in store.content]
        if not kinds or not store.is_active:
            continue
        path = f"/nodes/{proxmox.quote(node)}/storage/{proxmox.quote(store.name)}/content"
        for row in await reader.read(path, f"what is on {store.name} of {node}") or []:
            if row.get("content") in kinds:
                found.append(str(row.get("volid", "")))
    return tuple(sorted(found))
