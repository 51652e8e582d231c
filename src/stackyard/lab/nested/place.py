"""A place in the networks of labs: a guest, or a node of the outermost lab."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an address is: a guest of a lab, or a node of the outermost one."""

    world: World = field(repr=False)
    guest: Document | None = None
    node: str = ""
