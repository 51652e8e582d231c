"""A place in the networks of labs: a guest, or a node of the outermost lab."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["NetworkLocation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLocation:
    """Where an address is: a guest of a lab, or a node of the outermost one."""

    world: World = field(repr=False)
    guest: Document | None = None
    node: str = ""
