"""`proxmox_virtual_environment_nodes`: every node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_nodes(work: Work, config: Object) -> Object:
    nodes = await work.client.get("/nodes", max_age_s=_SAME_PICTURE_S)
    columns: dict[str, Callable[[dict[str, Any]], Any]] = {
        "cpu_count": lambda node: int(node.get("maxcpu") or 1),
        "cpu_utilization": lambda node: round(float(node.get("cpu") or 0), 2),
        "memory_available": lambda node: int(node.get("maxmem") or 0),
        "memory_used": lambda node: int(node.get("mem") or 0),
        "names": lambda node: str(node["node"]),
        "online": lambda node: node.get("status") == "online",
        "ssl_fingerprints": lambda node: str(node.get("ssl_fingerprint") or ""),
        "support_levels": lambda node: str(node.get("level") or ""),
        "uptime": lambda node: int(node.get("uptime") or 0),
    }
    listed = sorted(nodes, key=lambda node: str(node["node"]))
    return {
        **config,
        "id": "nodes",
        **{name: [read(node) for node in listed] for name, read in columns.items()},
    }


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_nodes",), read=_read_nodes)
