"""What moves with a resource, and what keeps it from a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.world.ha import config
from pvelab.world.ha.groups import group_rules
from pvelab.world.ha.rules import Affinity, Rule, compile_rules

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["affinity_of", "motion_info"]


def affinity_of(world: World) -> Affinity:
    """Return what the rules in force, and groups where there still are some, ask for."""
    rules = {
        ident: Rule.read(rule)
        for ident, rule in world.store.items(config.RULES).items()
        if not rule.get("disable")
    }
    rules |= group_rules(world.store, config.RESOURCES)
    return compile_rules(rules, list(world.cluster.nodes()))


def motion_info(world: World, sid: str) -> tuple[list[str], dict[str, list[dict[str, str]]]]:
    """Return the resources that move with one, and by node those that keep it from there."""
    if not config.is_managed(world.store, sid):
        return [], {}
    state = config.status(world.store)
    services = state.get("service_status", {})
    affinity = affinity_of(world)
    together = [other for other in sorted(affinity.together.get(sid, ())) if other in services]
    blocking: dict[str, list[dict[str, str]]] = {}
    for node, condition in state.get("node_status", {}).items():
        for other in sorted(affinity.apart.get(sid, ())) if condition == "online" else ():
            service = services.get(other)
            if service is not None and service["node"] == node and service.get("target", node) == node:
                blocking.setdefault(node, []).append({"sid": other, "cause": "resource-affinity"})
    return together, blocking
