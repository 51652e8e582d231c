"""How large, how deep and how full a text from outside may be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LARGE", "OUTSIDE", "SMALL", "DocumentLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """What a reader takes.

    Attributes:
        size: The most characters or bytes.
        depth: The most levels of mappings and lists, those that aliases bring with them included.
        values: The most values, each counted as often as aliases and merge keys repeat it.
    """

    size: int
    depth: int = 100
    values: int


# For settings, notes and requests that never have more than a few hundred values.
SMALL = DocumentLimits(size=2 * 2**20, values=50_000)
# For what people write and what programs answer: files of a site, requests, answers of a cluster.
OUTSIDE = DocumentLimits(size=32 * 2**20, values=1_000_000)
# For what grows with everything that is managed: states, plans, and what OpenTofu and Proxmox say of it.
LARGE = DocumentLimits(size=512 * 2**20, values=20_000_000)
