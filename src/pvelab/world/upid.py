"""UPIDs, the names of tasks: `UPID:node:pid:pstart:starttime:type:id:user:`."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Upid", "parse_upid"]

_UPID = re.compile(
    r"UPID:([a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8})"
    r":([^:\s/]+):([^:\s/]*):([^:\s/]+):"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upid:
    """What a UPID says."""

    node: str
    pid: int
    pstart: int
    starttime: int
    type: str
    id: str
    user: str

    def __str__(self) -> str:
        numbers = f"{self.pid:08X}:{self.pstart:08X}:{self.starttime:08X}"
        return f"UPID:{self.node}:{numbers}:{self.type}:{self.id}:{self.user}:"


def parse_upid(text: str) -> Upid | None:
    """Return what a UPID says, or None if the text is none."""
    found = _UPID.fullmatch(text)
    if not found:
        return None
    node, pid, pstart, starttime, kind, ident, user = found.groups()
    return Upid(
        node=node,
        pid=int(pid, 16),
        pstart=int(pstart, 16),
        starttime=int(starttime, 16),
        type=kind,
        id=ident,
        user=user,
    )
