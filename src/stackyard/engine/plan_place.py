"""Where a plan is while it is made, read and applied: in memory where possible, else in a private folder.

A plan holds every secret in clear. One in memory has no name in any file system, is seen by this process and
the engine alone, and is gone when they are, however they end.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PlanPlace", "is_in_memory", "open_plan_place"]

# The same path means the same in the engine, which has the descriptor under the same number.
_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class PlanPlace:
    """Where a plan is.

    Attributes:
        path: What the engine writes to and reads.
        descriptors: What the engine has to inherit for that; nothing where it is a file.
    """

    path: Path
    descriptors: tuple[int, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is on a disk, so that it has to be encrypted."""
        return not self.descriptors


def is_in_memory(path: Path) -> bool:
    """Return whether a path is that of a place in memory."""
    return path.parent == _DESCRIPTORS


@contextlib.contextmanager
def open_plan_place() -> Iterator[PlanPlace]:
    """Give a place for one plan, for the length of the block.

    Raises:
        OSError: There is no room for it.
    """
    if not hasattr(os, "memfd_create") or not _DESCRIPTORS.is_dir():
        with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
            yield PlanPlace(Path(folder) / "plan")
        return
    number = os.memfd_create("plan")
    try:
        yield PlanPlace(_DESCRIPTORS / str(number), (number,))
    finally:
        os.close(number)
