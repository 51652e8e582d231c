"""What the cluster is: its version, nodes, datastores and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource
from stackyard.provider.resources.pool import pool_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["ALL"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_version(work: Work, config: Object) -> Object:
    found = await work.client.get("/version", max_age_s=_SAME_PICTURE_S)
    return {
        **config,
        "id": "version",
        "release": found.get("release"),
        "repository_id": found.get("repoid"),
        "version": found.get("version"),
    }


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


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(int(value))


def _number(value: Any) -> int | None:
    return None if value is None else int(float(value))


def _datastore(node: str, found: dict[str, Any]) -> Object:
    fraction = found.get("used_fraction")
    return {
        "active": _flag(found.get("active")),
        "content_types": sorted(part for part in str(found.get("content") or "").split(",") if part),
        "enabled": _flag(found.get("enabled")),
        "id": found["storage"],
        "node_name": node,
        "shared": _flag(found.get("shared")),
        "space_available": _number(found.get("avail")),
        "space_total": _number(found.get("total")),
        "space_used": _number(found.get("used")),
        "space_used_fraction": None if fraction is None else float(fraction),
        "type": found["type"],
    }


async def _read_datastores(work: Work, config: Object) -> Object:
    node, filters = config["node_name"], config.get("filters") or {}
    query = {
        "content": ",".join(sorted(filters.get("content_types") or ())) or None,
        "storage": filters.get("id"),
        "target": filters.get("target"),
    }
    path = f"/nodes/{proxmox.quote(node)}/storage"
    listed = await work.client.get(path, query, max_age_s=_SAME_PICTURE_S)
    return {**config, "datastores": [_datastore(node, found) for found in listed]}


async def _read_pools(work: Work, config: Object) -> Object:
    pools = await work.client.get("/pools", max_age_s=_SAME_PICTURE_S)
    return {**config, "id": "pools", "pool_ids": [str(pool["poolid"]) for pool in pools]}


async def _read_pool(work: Work, config: Object) -> Object:
    pool_id = config["pool_id"]
    (pool,) = await work.client.get("/pools", {"poolid": pool_id}, max_age_s=_SAME_PICTURE_S)
    return {**config, "id": pool_id, **pool_values(pool)}


ALL = (
    DataSource(names=("proxmox_version", "proxmox_virtual_environment_version"), read=_read_version),
    DataSource(names=("proxmox_virtual_environment_nodes",), read=_read_nodes),
    DataSource(names=("proxmox_virtual_environment_node",), read=_read_node),
    DataSource(names=("proxmox_datastores", "proxmox_virtual_environment_datastores"), read=_read_datastores),
    DataSource(names=("proxmox_virtual_environment_pools",), read=_read_pools),
    DataSource(names=("proxmox_virtual_environment_pool",), read=_read_pool),
)
