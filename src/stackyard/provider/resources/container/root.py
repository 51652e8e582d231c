"""Changes of the root disk of a container that is there: it grows, and its options change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import GIB, parse, parse_size
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.container.blocks import DEFAULTS, block, guest_of, has
from stackyard.provider.resources.container.properties import ROOT, root_disk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["change_root"]


async def change_root(work: Work, state: Object, config: Mapping[str, Any]) -> dict[str, Any]:
    """Grow the root disk to its size, and return the property that sets its options where they differ."""
    if not has(state, "disk"):
        return {}
    parts = parse(str(config.get(ROOT, "")), "volume")
    wanted = {**DEFAULTS["disk"], **{k: v for k, v in block(state, "disk").items() if v is not None}}
    there, size = parse_size(parts.get("size", "")) or 0, int(wanted["size"]) * GIB
    if size > there:
        # A call whose answer was lost has done it.
        params, timeout_s = {"disk": ROOT, "size": f"{wanted['size']}G"}, float(state["timeout_update"])
        await guest_of(work, state).run(
            "resize", params, timeout_s=timeout_s, done="already at specified size"
        )
        there = size
    if size < there and wanted["size"] != DEFAULTS["disk"]["size"]:
        raise AttributeValueError(
            f"The root disk has {there // GIB} GiB, and Proxmox does not make it smaller.",
            ("disk", 0, "size"),
        )
    text = root_disk(wanted, parts.get("volume", ""), size=there // GIB)
    return {} if parse(text, "volume") == parts else {ROOT: text}
