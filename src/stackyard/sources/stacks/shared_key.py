"""Which line to change where two stacks keep their state in one place: mostly, one is a copy of the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["describe_change"]


def describe_change(tree: WorkingTree, setting: str, places: Sequence[Location]) -> str:
    """Return a sentence that says which line to change; empty where no line is known.

    Args:
        tree: The files on disk.
        setting: The setting that tells one state from the others, such as `key`.
        places: The backend blocks.
    """
    lines = [one for one in (_find_line(tree, setting, place) for place in places) if one is not None]
    if not lines:
        return ""
    # A copy that is not committed yet is the one to change.
    new = [one for one in lines if tree.is_git and not tree.is_tracked(Path(tree.top, one.path))]
    if len(new) == 1 and len(lines) > 1:
        return f" Change `{setting}` in {new[0]}, which is not committed yet."
    return f" Change `{setting}` in {' or '.join(str(one) for one in lines)}."


def _find_line(tree: WorkingTree, setting: str, block: Location) -> Location | None:
    """Return the line of a setting in a block; None where the block does not have it."""
    name = re.escape(setting.rpartition(".")[2])
    try:
        text = Path(tree.top, block.path).read_text(errors="replace")
    except OSError:
        return None
    lines = text.splitlines()
    for number in range(block.line or 1, len(lines) + 1):
        line = lines[number - 1]
        if re.search(rf'(?:^|[\s{{"]){name}"?\s*[=:]', line):
            return Location(block.path, number)
        if line.startswith("}"):
            return None
    return None
