"""Refs of a repository, read as the files that they are: no program runs and no setting counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RefFiles"]

# As many steps as git itself follows.
_MOST_STEPS = 5
_SYMBOLIC = "ref: "


class RefFiles:
    """The refs of a repository.

    Args:
        git_folder: The git folder of a working tree.
    """

    def __init__(self, git_folder: Path) -> None:
        self._folder = git_folder
        try:
            self._common = git_folder / (git_folder / "commondir").read_text().strip()
        except (OSError, UnicodeDecodeError):
            self._common = git_folder
        self._packed: dict[str, str] | None = None

    @property
    def are_known(self) -> bool:
        """Whether the refs are in files that this module reads."""
        return not (self._common / "reftable").exists()

    def branch(self) -> str:
        """Return the branch that HEAD names, empty for a detached one."""
        said = self._read("HEAD")
        leads_to = said.removeprefix(_SYMBOLIC)
        return leads_to.removeprefix("refs/heads/") if leads_to != said else ""

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the object that a ref is, and the ref that it leads to; None where there is none."""
        for _ in range(_MOST_STEPS):
            said = self._read(name)
            if not said.startswith(_SYMBOLIC):
                return (said, name) if said else None
            name = said.removeprefix(_SYMBOLIC)
        return None

    def shallow_sign(self) -> str:
        """Return what differs whenever the history ends elsewhere."""
        try:
            said = (self._common / "shallow").stat()
        except OSError:
            return ""
        return f"{said.st_mtime_ns} {said.st_size}"

    def _read(self, name: str) -> str:
        if not name or name.startswith("/") or ".." in name:
            return ""
        for folder in (self._folder, self._common):
            try:
                return (folder / name).read_text().strip()
            except (OSError, UnicodeDecodeError):
                continue
        if self._packed is None:
            self._packed = self._read_packed()
        return self._packed.get(name, "")

    def _read_packed(self) -> dict[str, str]:
        try:
            text = (self._common / "packed-refs").read_text(errors="surrogateescape")
        except OSError:
            return {}
        rows = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("#", "^"))
        return {row[1]: row[0] for row in rows if len(row) > 1}
