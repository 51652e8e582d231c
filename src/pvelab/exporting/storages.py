"""Storages: their definitions, how much fits, and what is in them, without the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.journal import is_secret
from pvelab.server.problems import PveError
from pvelab.world.storage.storages import KNOWN_TYPES, Storages
from pvelab.world.storage.volume_names import parse_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.exporting.read import Source

__all__ = ["read_capacities", "read_storages", "read_volumes"]

_FACTS = ("content", "format", "vmid", "ctime", "notes", "parent")


async def read_storages(source: Source) -> dict[str, dict[str, Any]]:
    """Return the definitions by id; those of types that the lab does not have are left out."""
    found = {}
    for row in await source.rows("/storage"):
        name = str(row.pop("storage"))
        if row["type"] not in KNOWN_TYPES:
            source.note(f"storage {name}", f"the lab has no storages of type '{row['type']}'")
            continue
        found[name] = {key: value for key, value in row.items() if key != "digest" and not is_secret(key)}
    return found


async def read_capacities(
    source: Source, nodes: Sequence[str], storages: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return how many bytes fit into each storage, once for a shared one."""
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    listed = await source.all(source.rows(f"/nodes/{node}/storage") for node in nodes)
    for node, rows in zip(nodes, listed, strict=True):
        for row in rows:
            storage = str(row["storage"])
            if storage not in storages or not row.get("total"):
                continue
            shared = Storages.is_shared(storages[storage])
            entry = {"storage": storage, "total": int(row["total"])}
            place = {} if shared else {"node": node}
            found.setdefault((storage, None if shared else node), {**entry, **place})
    return list(found.values())


async def read_volumes(
    source: Source, nodes: Sequence[str], storages: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return every volume that may be seen; a shared storage is read once."""
    places = []
    for storage, config in storages.items():
        on = [node for node in nodes if Storages.is_on(config, node) and not config.get("disable")]
        places += [(storage, node) for node in (on[:1] if Storages.is_shared(config) else on)]
    listed = await source.all(
        source.rows(f"/nodes/{node}/storage/{storage}/content") for storage, node in places
    )
    return [
        _volume(row, node)
        for (storage, node), rows in zip(places, listed, strict=True)
        for row in rows
        if _fits(source, storages[storage], str(row["volid"]))
    ]


def _fits(source: Source, config: Mapping[str, Any], volid: str) -> bool:
    """Return whether a volume has a name that the lab can read."""
    try:
        parse_name(config, volid.partition(":")[2])
    except PveError as err:
        source.note(volid, err.text)
        return False
    return True


def _volume(row: Mapping[str, Any], node: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"volume": row["volid"], "node": node, "size": int(row.get("size") or 0)}
    entry |= {key: row[key] for key in _FACTS if row.get(key) is not None}
    if row.get("protected"):
        entry["protected"] = 1
    return entry
