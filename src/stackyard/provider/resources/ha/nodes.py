"""Nodes with priorities, as rules and groups of high availability name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import Form
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NODES", "check_nodes"]


def _write_nodes(nodes: Mapping[str, Any]) -> str:
    return ",".join(
        name if priority is None else f"{name}:{priority}" for name, priority in sorted(nodes.items())
    )


def _read_nodes(text: Any) -> dict[str, int | None]:
    parts = (part.strip().partition(":") for part in str(text).split(",") if part.strip())
    return {name: int(priority) if priority else None for name, _, priority in parts}


NODES = Form(write=_write_nodes, read=_read_nodes)


def check_nodes(nodes: Mapping[str, Any]) -> str | None:
    """Check that there is a node, and that priorities are what Proxmox takes."""
    priorities = [float(one) for one in nodes.values() if one is not None and one is not UNKNOWN]
    if not nodes or any(not 0 <= one <= 1000 or not one.is_integer() for one in priorities):
        return "must name a node or more, with whole priorities from 0 to 1000"
    return None
