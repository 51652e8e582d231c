"""The user's own templates of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.directories import find_git_top
from stackyard.render.cluster import TemplateFile

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_overrides", "find_top"]

_FOLDER = Path("templates", "config", "infrastructure")


def find_top(folder: Path) -> Path:
    """Return the top of the repository that a folder is in; the folder itself where there is none."""
    here = folder.absolute()
    return find_git_top(here) or here


def find_overrides(folder: Path) -> dict[str, TemplateFile]:
    """Return the user's templates by their path in `templates/config/infrastructure`.

    Those beside the cluster replace those of the repository, file by file.

    Raises:
        FileError: One cannot be read.
    """
    found: dict[str, TemplateFile] = {}
    for top in dict.fromkeys((find_top(folder), folder.absolute())):
        listed = {
            path.relative_to(top / _FOLDER).as_posix(): path
            for path in _walk(top / _FOLDER, find_top(folder))
        }
        for name, path in sorted(listed.items()):
            # `main.tf` replaces `main.tf.j2` of the folder above, and the other way round.
            found.pop(name.removesuffix(".j2"), None)
            found.pop(f"{name.removesuffix('.j2')}.j2", None)
            found[name] = TemplateFile(path=str(path), text=files.read_text(path))
    return found


def _walk(folder: Path, top: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    inside = top.resolve()
    for path in sorted(folder.rglob("*")):
        # A link, also of a folder above, may lead out of the repository.
        if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(inside):
            yield path
