"""What all pools of disks share: the storage that is defined with them and goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["NewStorage", "forget_storages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStorage:
    """The storage that a new pool is to be known by, on one node."""

    name: str
    node: str
    settings: Mapping[str, Any]
    size: int

    def check(self, call: Call) -> None:
        """Refuse at once what could not be added later.

        Raises:
            PveError: 403, or there is a storage of that name that is another one.
        """
        call.check("/storage", "Datastore.Allocate")
        found = call.world.storages.all().get(self.name)
        if found is None:
            return
        if not found.get("nodes") or self.node in split_list(str(found["nodes"])):
            raise PveError(f"Storage ID '{self.name}' already exists on node {self.node}")
        for key, wanted in self.settings.items():
            if key == "content":
                continue
            if key not in found:
                text = f"Option '{key}' is not configured for storage '{self.name}'"
                raise PveError(f"{text}, expected it to be '{wanted}'")
            if found[key] != wanted:
                text = f"Option '{key}' ({wanted}) does not match existing storage configuration"
                raise PveError(f"{text} '{found[key]}'")

    def add(self, world: World, task: Task) -> None:
        """Define the storage, or add the node to the one that other nodes have, in the running step."""
        found = world.storages.all().get(self.name)
        if found is None:
            document = {"storage": self.name, **self.settings, "nodes": self.node}
            world.store.put("storages", self.name, document)
        else:
            nodes = sorted({*split_list(str(found["nodes"])), self.node})
            world.store.put("storages", self.name, {**found, "nodes": ",".join(nodes)})
            task.log(f"Added '{self.node}' to nodes for storage '{self.name}'")
        world.store.put("capacities", f"{self.node}|{self.name}", {"total": self.size})


def forget_storages(world: World, node: str, matches: Callable[[Document], bool]) -> None:
    """Take a node out of the storages that stood on what is gone; one without nodes goes, too."""
    for name, config in list(world.storages.all().items()):
        if not matches(config):
            continue
        nodes = split_list(str(config.get("nodes", ""))) or list(world.cluster.nodes())
        if node not in nodes:
            continue
        left = sorted(set(nodes) - {node})
        world.store.delete("capacities", f"{node}|{name}")
        if left:
            world.store.put("storages", name, {**config, "nodes": ",".join(left)})
        else:
            world.store.delete("storages", name)
