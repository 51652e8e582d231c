"""The SDN configuration in force: how it differs from the written one, and what nodes have made of it.

Documents: the collections of `PARTS` hold what is written; `sdn/running` has the `version` in force and a
copy of each part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.world.bridges import SDN_LOCAL, links_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.world.store import Document, Store
    from pvelab.world.world import World

__all__ = [
    "PARTS",
    "commit",
    "has_pending_changes",
    "is_on",
    "list_pending",
    "read_applied",
    "read_applied_version",
    "roll_back",
    "take_over",
]

PARTS: Mapping[str, str] = {
    "zones": "sdn_zones",
    "vnets": "sdn_vnets",
    "subnets": "sdn_subnets",
    "controllers": "sdn_controllers",
    "fabrics": "sdn_fabrics",
    "fabric_nodes": "sdn_fabric_nodes",
}
# Changes of fabrics do not keep anyone from taking the lock; Proxmox does not look at them.
_LOOKED_AT = ("zones", "vnets", "subnets", "controllers")
_COLLECTION, _KEY = "sdn", "running"
# These stand beside the pending values, not among them.
_IDENTITY = frozenset(("type", "vnet", "route-map-id", "order"))
_LISTS = frozenset(("nodes", "exitnodes", "dhcp-range", "interfaces", "entries", "match", "set"))


def read_applied(store: Store, part: str) -> Mapping[str, Document]:
    """Return the objects in force of one part, by id."""
    found: Mapping[str, Document] = (store.get(_COLLECTION, _KEY) or {}).get(part, {})
    return found


def read_applied_version(store: Store) -> int:
    """Return how often the configuration has been applied."""
    return int((store.get(_COLLECTION, _KEY) or {}).get("version", 0))


def commit(store: Store) -> None:
    """Put the written configuration in force."""
    written = {part: dict(store.items(collection)) for part, collection in PARTS.items()}
    store.put(_COLLECTION, _KEY, {"version": read_applied_version(store) + 1, **written})


def roll_back(store: Store) -> None:
    """Write the configuration in force over the written one."""
    for part, collection in PARTS.items():
        kept = read_applied(store, part)
        for ident in [ident for ident in store.items(collection) if ident not in kept]:
            store.delete(collection, ident)
        for ident, section in kept.items():
            store.put(collection, ident, section)


def list_pending(
    written: Mapping[str, Document], in_force: Mapping[str, Document]
) -> dict[str, dict[str, Any]]:
    """Return objects with what is in force and, under `pending`, what would be after the next apply.

    An object that differs has a `state`: `new`, `changed` or `deleted`; a value that goes is `deleted`.
    """
    found = {ident: _of_running(section, written.get(ident) or {}) for ident, section in in_force.items()}
    for ident, section in written.items():
        entry = found.setdefault(ident, {})
        _add_written(entry, section, in_force.get(ident) or {})
    return {ident: found[ident] for ident in sorted(found)}


def has_pending_changes(store: Store) -> bool:
    """Return whether an apply would change anything."""
    return any(
        "pending" in entry
        for part in _LOOKED_AT
        for entry in list_pending(store.items(PARTS[part]), read_applied(store, part)).values()
    )


def is_on(zone: Mapping[str, Any], node: str) -> bool:
    """Return whether a zone is on a node."""
    return "nodes" not in zone or node in str(zone["nodes"]).split(",")


def take_over(world: World, node: str, log: Callable[[str], None]) -> None:
    """Let a node make the networks of the configuration in force.

    Args:
        world: The lab.
        node: The node.
        log: Where problems with single networks go; the others are created all the same.
    """
    version = read_applied_version(world.store)
    if not version:
        return
    zones = read_applied(world.store, "zones")
    made: dict[str, Any] = {}
    for ident, vnet in sorted(read_applied(world.store, "vnets").items()):
        zone = zones.get(str(vnet["zone"]))
        if zone is None:
            log(f"can't generate vnet '{ident}': zone {vnet['zone']} don't exist")
        elif is_on(zone, node):
            bridge = zone.get("bridge")
            if bridge and bridge not in links_up(world.store, node):
                log(f"zone {vnet['zone']} : vnet {ident} : can't find bridge {bridge}")
            else:
                made[ident] = {"zone": vnet["zone"], "vlan_aware": int(bool(vnet.get("vlanaware")))}
    world.store.put(SDN_LOCAL, node, {"version": version, "vnets": made})


def _of_running(section: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = dict(section)
    if not written:
        entry |= {"state": "deleted", "pending": {}}
        return entry
    gone = {key: "deleted" for key in section if key not in written}
    if gone or any(_plain(key, written.get(key)) != _plain(key, value) for key, value in section.items()):
        entry |= {"state": "changed", "pending": gone}
    return entry


def _add_written(entry: dict[str, Any], section: Mapping[str, Any], in_force: Mapping[str, Any]) -> None:
    for key, value in section.items():
        if key in _IDENTITY:
            entry[key] = value
        elif key not in in_force or _plain(key, value) != _plain(key, in_force[key]):
            entry.setdefault("pending", {})[key] = value
    if not in_force:
        entry["state"] = "new"
    elif any(key not in in_force for key in section):
        entry["state"] = "changed"
    if "state" in entry:
        entry.setdefault("pending", {})


def _plain(key: str, value: Any) -> str:
    if key in _LISTS and isinstance(value, list):
        return ",".join(sorted(value))
    return str(value)
