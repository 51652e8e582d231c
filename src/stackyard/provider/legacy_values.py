"""States of the older SDK, for which nothing and zero are the same: keep the spelling that was there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.values import Object, is_zero

if TYPE_CHECKING:
    from stackyard.provider.schema import Block

__all__ = ["align"]


def align(block: Block, before: Object, after: Object) -> Object:
    """Return what was read, with null or zero where the same was null or zero before."""
    aligned = {
        name: _keep_spelling(before.get(name), after.get(name))
        if name in block.attributes
        else after.get(name)
        for name in after
    }
    for name, nested in block.blocks.items():
        old, new = before.get(name), after.get(name)
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            aligned[name] = [align(nested.block, a, b) for a, b in zip(old, new, strict=True)]
    return aligned


def _keep_spelling(before: Any, after: Any) -> Any:
    return before if is_zero(before) and is_zero(after) else after
