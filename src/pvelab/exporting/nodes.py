"""Nodes: what they are made of, their networks, and their own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.network.read import Interfaces
from pvelab.api.nodes.network.write import write_interfaces
from pvelab.exporting.read import create_call
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.exporting.read import Source

__all__ = ["node_calls", "read_nodes"]

_SIZES = (("cpus", "maxcpu"), ("memory", "maxmem"), ("rootfs", "maxdisk"))
# Nothing of these is a setting: keys, and what only the machine itself can have.
_NOT_COPIED = ("acme", "digest")
_SOURCE = "source /etc/network/interfaces.d/*"
_NUMBERED = frozenset(("priority", "autostart", "active", "exists"))


async def read_nodes(
    source: Source, status: Sequence[Mapping[str, Any]], resources: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return all nodes, in the order in which they joined the cluster."""
    rows = {str(row["node"]): row for row in resources if row["type"] == "node"}
    told = {str(row["name"]): row for row in status if row["type"] == "node"}
    # The node that answers calls which name none is the first one of a lab.
    names = sorted(rows, key=lambda name: (int(told.get(name, {}).get("nodeid", 0)), name))
    entries = []
    for name in names:
        entry: dict[str, Any] = {"name": name}
        if told.get(name, {}).get("ip"):
            entry["ip"] = told[name]["ip"]
        entry |= {key: int(rows[name][shown]) for key, shown in _SIZES if rows[name].get(shown)}
        if rows[name].get("status") == "online":
            text = _interfaces(source, name, await source.rows(f"/nodes/{name}/network"))
            entry |= {"interfaces": text} if text else {}
        entries.append(entry)
    return entries


async def node_calls(source: Source, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the calls that set the name servers, the time zone and the notes of the nodes."""
    calls = []
    for node in nodes:
        for name in ("config", "dns", "time"):
            path = f"/nodes/{node}/{name}"
            told = await source.entry(path)
            kept = {key: value for key, value in told.items() if not key.startswith(_NOT_COPIED)}
            call = create_call(source, f"PUT /nodes/{{node}}/{name}", kept, path)
            if call.get("parameters"):
                calls.append(call)
    return calls


def _interfaces(source: Source, node: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the file that the interfaces of a node are described by, as Proxmox would write it."""
    interfaces = Interfaces(others=[(10**6, _SOURCE)])
    for row in rows:
        kept = {key: value for key, value in row.items() if key not in ("iface", "cidr", "cidr6", "altnames")}
        interfaces.by_name[str(row["iface"])] = {
            key: int(value) if key in _NUMBERED else value for key, value in kept.items()
        }
    if not interfaces.by_name:
        return None
    # The list of a node has no loopback, the file of every node has.
    lo = {"type": "loopback", "method": "loopback", "families": ["inet"], "autostart": 1, "priority": 1}
    interfaces.by_name.setdefault("lo", lo)
    try:
        # Spaces, because YAML shows a text with tabs in it on one long line.
        return write_interfaces(interfaces).replace("\t", "    ")
    except (PveError, KeyError, ValueError) as err:
        source.note(f"/nodes/{node}/network", f"it cannot be written as a file: {err}")
        return None
