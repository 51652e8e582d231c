"""What the cluster has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["OWNER_TAG", "Cluster", "ClusterGuest", "ClusterObject", "Node", "Storage"]

# How the tags begin that say which manifest a guest belongs to.
OWNER_TAG = "stackyard."


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as far as it is known."""

    name: str
    memory_bytes: int
    bridges: frozenset[str]
    is_online: bool = True
    # How many processors it has; none where the token may not know.
    processors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A storage on a node."""

    name: str
    node: str
    free_bytes: int
    total_bytes: int
    is_shared: bool = False
    # A thin storage may promise more than it has left.
    is_thin: bool = False
    # What Proxmox calls its type (`zfspool`, `nfs`, ...); empty where that is not known.
    type: str = ""
    # What it takes (`images`, `snippets`, ...); nothing where that is not known.
    contents: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGuest:
    """A guest that is there."""

    vm_id: int
    name: str
    node: str
    kind: str
    memory_bytes: int = 0
    tags: frozenset[str] = frozenset()
    uptime_s: int = 0
    is_template: bool = False

    def may_be(self, tags: Collection[str]) -> bool:
        """Tell whether a guest of the same name with these tags may be this one: not if a manifest has it."""
        owners = {tag for tag in self.tags if tag.startswith(OWNER_TAG)}
        return not owners or not owners.isdisjoint(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObject:
    """A pool, a bridge, a part of the SDN or of high availability that is there.

    Attributes:
        kind: The type of its resource, without the provider's prefix.
        identity: What names it among all of its kind: see `guard.subjects.identity_of`.
        import_id: What the provider imports it as.
        state_id: The id that it has in a state.
    """

    kind: str
    identity: str
    import_id: str
    state_id: str

    @classmethod
    def from_name(cls, kind: str, identity: str) -> ClusterObject:
        """Return one whose name is also its id."""
        return cls(kind=kind, identity=identity, import_id=identity, state_id=identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes, storages, guests and other objects of one cluster at one moment."""

    nodes: tuple[Node, ...]
    storages: tuple[Storage, ...]
    guests: tuple[ClusterGuest, ...]
    objects: tuple[ClusterObject, ...] = ()

    def node(self, name: str) -> Node | None:
        """Return a node."""
        return next((node for node in self.nodes if node.name == name), None)

    def storage(self, node: str, name: str) -> Storage | None:
        """Return a storage of a node."""
        return next((s for s in self.storages if s.name == name and s.node == node), None)
