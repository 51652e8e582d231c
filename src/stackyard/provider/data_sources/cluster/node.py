"""`proxmox_virtual_environment_node`: one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_node(work: Work, config: Object) -> Object:
    name = config["node_name"]
    found = await work.client.get(f"/nodes/{proxmox.quote(name)}/status", max_age_s=_SAME_PICTURE_S)
    processor, memory = found.get("cpuinfo") or {}, found.get("memory") or {}
    return {
        **config,
        "id": name,
        "cpu_cores": int(processor.get("cores") or 1),
        "cpu_count": int(processor.get("cpus") or 1),
        "cpu_sockets": int(processor.get("sockets") or 1),
        "cpu_model": str(processor.get("model") or ""),
        "cpu_utilization": round(float(found.get("cpu") or 0), 2),
        "memory_available": int(memory.get("free") or 0),
        "memory_used": int(memory.get("used") or 0),
        "memory_total": int(memory.get("total") or 0),
        "uptime": int(found.get("uptime") or 0),
    }


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_node",), read=_read_node)
