"""Nodes that are reached over their own network, so that a change of it may cut them off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["follow_network", "leave_network", "set_reached"]


def follow_network(world: World, document: Document) -> None:
    """Let a node be reached over its network from now on."""
    node = str(document["node"])
    found = world.store.get("nodes", node)
    if found is None:
        raise PveError(f"there is no node '{node}'", status=400)
    world.store.put("nodes", node, {**found, "follows_network": 1})


def leave_network(world: World, document: Document) -> None:
    """Let a node be reached whatever its network is."""
    set_reached(world, str(document["node"]), is_reached=True)
    with world.store.edit("nodes", str(document["node"])) as node:
        node.pop("follows_network", None)


def set_reached(world: World, node: str, *, is_reached: bool) -> None:
    """Cut a node off that follows its network, or let it answer again."""
    found = world.store.items("nodes")[node]
    if not found.get("follows_network") or bool(found.get("cut_off")) != is_reached:
        return
    left = {key: value for key, value in found.items() if key not in ("cut_off", "unreachable")}
    cut = {"online": 0, "cut_off": 1, "unreachable": "No route to host"}
    world.store.put("nodes", node, {**left, "online": 1} if is_reached else {**left, **cut})
