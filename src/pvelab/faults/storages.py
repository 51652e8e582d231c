"""Faults of storages: full ones, and ones whose server does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.storages import ASKED_TYPES, OFFLINE

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["empty_storage", "fill_storage", "part_storage", "rejoin_storage"]


def fill_storage(world: World, document: Document) -> None:
    """Leave no space in a storage."""
    _require_storage(world, document)
    _set_full(world, document, full=True)


def empty_storage(world: World, document: Document) -> None:
    """Let a storage have its space again."""
    # Meanwhile it may be gone.
    if world.store.get("storages", str(document["storage"])) is not None:
        _set_full(world, document, full=False)


def _set_full(world: World, document: Document, *, full: bool) -> None:
    storage, nodes = str(document["storage"]), _nodes_of(world, document)
    for place in dict.fromkeys(f"{world.storages.scope(storage, node)}|{storage}" for node in nodes):
        with world.store.edit("capacities", place) as capacity:
            capacity.setdefault("total", world.storages.total(storage, nodes[0]))
            capacity["full"] = int(full)


def part_storage(world: World, document: Document) -> None:
    """Let the server of a storage not answer."""
    config = _require_storage(world, document)
    if config["type"] not in ASKED_TYPES:
        kinds = ", ".join(sorted(ASKED_TYPES))
        raise PveError(
            f"'{document['storage']}' is on no server: only {kinds} storages can be offline", status=400
        )
    for node in _nodes_of(world, document):
        world.store.put(OFFLINE, f"{node}|{document['storage']}", {})


def rejoin_storage(world: World, document: Document) -> None:
    """Let the server of a storage answer again."""
    for node in _nodes_of(world, document):
        world.store.delete(OFFLINE, f"{node}|{document['storage']}")


def _require_storage(world: World, document: Document) -> Document:
    """Return the configuration of the storage that a fault is about.

    Raises:
        PveError: There is none (400).
    """
    config = world.store.get("storages", str(document["storage"]))
    if config is None:
        raise PveError(f"there is no storage '{document['storage']}'", status=400)
    return config


def _nodes_of(world: World, document: Document) -> list[str]:
    """Return the nodes that a fault of a storage is on: the one that it names, or all."""
    return [str(document["node"])] if "node" in document else list(world.cluster.nodes())
