"""A folder that a lab has for itself: one that outlives it, or one that goes with it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories

if TYPE_CHECKING:
    from collections.abc import Callable, Container

__all__ = ["OwnFolder", "remove_folder"]


def remove_folder(path: Path) -> None:
    """Remove a file, or a folder with everything in it; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


class OwnFolder:
    """Makes the folder when it is first needed.

    Args:
        lasting: Where it outlives the lab; a folder of its own that goes with the lab if None.
        prefix: How the name of such a folder begins.
        remove: Removes a file or folder that is in it, and at last itself.
    """

    def __init__(
        self, lasting: Path | None, prefix: str, remove: Callable[[Path], None] = remove_folder
    ) -> None:
        self._lasting = lasting
        self._prefix = prefix
        self._made: Path | None = None
        self.remove = remove

    @property
    def path(self) -> Path:
        """Where it is.

        Raises:
            FileError: It cannot be created.
        """
        if self._made is None:
            if self._lasting is None:
                self._made = Path(tempfile.mkdtemp(prefix=self._prefix))
            else:
                self._made = directories.ensure_private(self._lasting)
        return self._made

    def tidy(self, named: Container[str]) -> None:
        """Remove what a killed lab left behind: everything in it that has none of these names."""
        if self._lasting is not None and self._lasting.is_dir():
            for path in self._lasting.iterdir():
                if path.name not in named:
                    self.remove(path)

    def close(self) -> None:
        """Remove it, unless it is to outlive the lab."""
        if self._made is not None and self._lasting is None:
            self.remove(self._made)
            self._made = None
