"""`proxmox_datastores`: the datastores of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource, both_names

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


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


DATA_SOURCE = DataSource(names=both_names("datastores"), read=_read_datastores)
