"""Changes of the root disk of a container that is there: it grows, and its options change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.container.blocks import DEFAULTS, block, has, path_of
from stackyard.provider.resources.container.properties import ROOT, root_disk
from stackyard.provider.resources.container.texts import GIB, size_bytes, split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["change_root", "grow"]


async def change_root(work: Work, state: Object, config: Mapping[str, Any]) -> dict[str, Any]:
    """Grow the root disk to its size, and return the property that sets its options where they differ."""
    if not has(state, "disk"):
        return {}
    parts = split(str(config.get(ROOT, "")), "volume")
    wanted = {**DEFAULTS["disk"], **{k: v for k, v in block(state, "disk").items() if v is not None}}
    there, size = size_bytes(parts.get("size", "")) or 0, int(wanted["size"]) * GIB
    if size > there:
        await grow(work, state, f"{wanted['size']}G")
        there = size
    if size < there and wanted["size"] != DEFAULTS["disk"]["size"]:
        raise AttributeValueError(
            f"The root disk has {there // GIB} GiB, and Proxmox does not make it smaller.",
            ("disk", 0, "size"),
        )
    text = root_disk(wanted, parts.get("volume", ""), size=there // GIB)
    return {} if split(text, "volume") == parts else {ROOT: text}


async def grow(work: Work, state: Object, size: str) -> None:
    """Make the root disk larger."""
    path, timeout_s = f"{path_of(state)}/resize", float(state["timeout_update"])
    try:
        upid = await work.client.put(path, {"disk": ROOT, "size": size})
        await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
    except (proxmox.RefusedError, proxmox.TaskFailedError) as err:
        # A call whose answer was lost has done it.
        if "already at specified size" not in err.detail:
            raise
