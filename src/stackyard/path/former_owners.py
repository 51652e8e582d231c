"""Who had the objects of a target before, and who has those that were its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.path.named_objects import is_cluster_wide, is_interface

if TYPE_CHECKING:
    from stackyard.path.target import Target

__all__ = ["FormerOwner", "Successor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerOwner:
    """A target whose state may have objects which belong to another now.

    Attributes:
        owner: The target.
        interfaces: Whether interfaces of nodes are taken from it.
        cluster_wide: Whether pools and parts of the SDN are.
    """

    owner: Target
    interfaces: bool
    cluster_wide: bool

    def gives(self, kind: str) -> bool:
        """Return whether objects of a type, without its prefix, are taken from it."""
        return (self.interfaces and is_interface(kind)) or (self.cluster_wide and is_cluster_wide(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A target to which objects belong that the state of another may still have.

    Attributes:
        target: The target, as users name it.
        interfaces: Whether interfaces of nodes belong to it.
    """

    target: str
    interfaces: bool

    def takes(self, kind: str) -> bool:
        """Return whether objects of a type, without its prefix, belong to it."""
        return is_interface(kind) if self.interfaces else is_cluster_wide(kind)
