"""The sources as someone has them who has no git: a build there changes nothing here."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["copy_sources"]

ROOT = Path(__file__).parents[2]
NAMES = (
    "src scripts pyproject.toml requirements.lock README.md LICENSE CHANGELOG.md .gitignore install.sh"
).split()


def copy_sources(folder: Path) -> Path:
    """Copy what a release is made from into a new folder, and return it."""
    folder.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "_version.py")
    for name in NAMES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder
