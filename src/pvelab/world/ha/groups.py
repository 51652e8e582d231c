"""HA groups: what rules have taken the place of, in a cluster that has not migrated them yet.

Documents: `ha_groups/<id>` with the options of a group, its `nodes` as a text. Whether a cluster still has
groups is `ha_groups` of `cluster/state`, which a seed sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.world.ha.rules import Rule, parse_nodes

if TYPE_CHECKING:
    from pvelab.world.store import Document, Store

__all__ = ["GROUPS", "are_migrated", "failback_of", "group_rules"]

GROUPS = "ha_groups"


def are_migrated(store: Store) -> bool:
    """Return whether rules have taken the place of groups, as they do once all nodes run Proxmox VE 9."""
    return not (store.get("cluster", "state") or {}).get("ha_groups")


def failback_of(store: Store, resource: Document) -> int | None:
    """Return whether a resource goes back to a better node, as its group says; None if it has no group."""
    if not resource.get("group"):
        return None
    group = store.get(GROUPS, str(resource["group"])) or {}
    return int(not group.get("nofailback"))


def group_rules(store: Store, resources: str) -> dict[str, Rule]:
    """Return the groups that are used, each as the rule that a migration would make of it.

    Args:
        store: The documents of the lab.
        resources: The collection of the resources.
    """
    users: dict[str, set[str]] = {}
    for sid, resource in store.items(resources).items():
        if resource.get("group"):
            users.setdefault(str(resource["group"]), set()).add(sid)
    return {
        f"ha-group-{ident}": Rule(
            type="node-affinity",
            resources=users[ident],
            nodes=parse_nodes(str(group["nodes"])),
            strict=bool(group.get("restricted")),
        )
        for ident, group in store.items(GROUPS).items()
        if ident in users
    }
