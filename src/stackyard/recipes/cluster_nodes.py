"""The node that the data of a recipe names: one of the cluster that the environment leads to."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.clients.proxmox.client import Client
from stackyard.provider.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["name_node"]

# What the data of every recipe says.
_EXAMPLE = b'"pve1"'
_ENDPOINT = "PROXMOX_VE_ENDPOINT"
_LONGEST_S = 10.0


async def name_node(files: Mapping[str, bytes]) -> tuple[dict[str, bytes], str]:
    """Return the files of a recipe with a node of the user's cluster in their data, and what to know of it.

    Without PROXMOX_VE_ENDPOINT, and where the cluster does not answer, they stay as they are.
    """
    data = [name for name, content in files.items() if name.endswith(".tfvars") and _EXAMPLE in content]
    if not data or not os.environ.get(_ENDPOINT):
        return dict(files), ""
    try:
        async with asyncio.timeout(_LONGEST_S):
            nodes = await _list_nodes()
    except (StackyardError, TimeoutError):
        note = f"{os.environ[_ENDPOINT]} could not be asked for its nodes: check `pve1` in {', '.join(data)}."
        return dict(files), note
    if not nodes or "pve1" in nodes:
        return dict(files), ""
    chosen = f'"{nodes[0]}"'.encode()
    changed = {name: files[name].replace(_EXAMPLE, chosen) for name in data}
    return {
        **files,
        **changed,
    }, f"The guests are on {nodes[0]}, of the nodes {', '.join(nodes)}: see {data[0]}."


async def _list_nodes() -> list[str]:
    """Return the nodes that are online, by name."""
    settings = read_settings({}, os.environ)
    async with Client(settings.connection) as client:
        rows = await client.get("/nodes")
    online = [row for row in rows if row.get("status") == "online"]
    return sorted(str(row["node"]) for row in online if str(row.get("node", "")).isprintable())
