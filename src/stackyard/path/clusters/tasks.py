"""Taskfiles of the user that are left alone, although their tasks have the names of ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.path.clusters.generated import FileChange

__all__ = ["warn_of_tasks"]

# A task or an include of a name that the generated files have.
_OURS = re.compile(rb"^\s+(configure|infra|plan|talos|apps):", re.MULTILINE)


def warn_of_tasks(left: Sequence[FileChange]) -> Iterator[str]:
    """Yield one warning where `task configure` or `task infra:plan` run something else than stackyard.

    Args:
        left: The Taskfiles that are left as they are.
    """
    foreign = [
        one.name for one in left if one.before and b"stackyard" not in one.before and _OURS.search(one.before)
    ]
    if foreign:
        named = " ".join(f"--overwrite {name}" for name in foreign)
        verb = "does" if len(foreign) == 1 else "do"
        yield (
            f"{' and '.join(foreign)} {verb} not run stackyard. Left as is; `stackyard cluster "
            f"configure {named}` writes ours; git keeps the former tasks."
        )
