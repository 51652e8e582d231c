"""Faults that change the lab when they are added, and change it back when they are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "bring_node_up",
    "expire_tickets",
    "lock_guest",
    "lose_quorum",
    "regain_quorum",
    "take_node_down",
    "unlock_guest",
]


def take_node_down(world: World, document: Document) -> None:
    """Take a node off the network."""
    _set_node(world, str(document["node"]), online=0, unreachable=document.get("reason", "No route to host"))


def bring_node_up(world: World, document: Document) -> None:
    """Bring it back."""
    _set_node(world, str(document["node"]), online=1, unreachable=None)


def _set_node(world: World, node: str, **fields: Any) -> None:
    found = world.store.get("nodes", node)
    if found is None:
        raise PveError(f"there is no node '{node}'", status=400)
    changed = {key: value for key, value in {**found, **fields}.items() if value is not None}
    world.store.put("nodes", node, changed)


def lose_quorum(world: World, _document: Document) -> None:
    """Take the quorum of the cluster."""
    with world.store.edit("cluster", "state") as state:
        state["quorum"] = "lost"


def regain_quorum(world: World, _document: Document) -> None:
    """Give it back."""
    with world.store.edit("cluster", "state") as state:
        state.pop("quorum", None)


def lock_guest(world: World, document: Document) -> None:
    """Lock a guest."""
    guest = world.guests.get(document["vmid"])
    if guest is None:
        raise PveError(f"there is no guest {document['vmid']}", status=400)
    world.guests.update(guest, config={**guest["config"], "lock": document.get("lock", "backup")})


def unlock_guest(world: World, document: Document) -> None:
    """Remove the lock, if it is the one of the fault."""
    guest = world.guests.get(document["vmid"])
    # Meanwhile it may be gone, or have another lock.
    if guest is not None and guest["config"].get("lock") == document.get("lock", "backup"):
        left = {key: value for key, value in guest["config"].items() if key != "lock"}
        world.guests.update(guest, config=left)


def expire_tickets(world: World, _document: Document) -> None:
    """Refuse all tickets so far."""
    world.tickets.renew_key()
