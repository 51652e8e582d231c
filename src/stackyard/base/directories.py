"""Where stackyard keeps files of its own: the XDG base folders of the user, outside any checkout.

The `*_folder` functions only name a folder. `ensure_private` makes it, at the moment someone writes there.
Beside a site or a deployment object that is the folder `PROJECT_FOLDER`: it holds keys and states, and git
has to leave it alone. Nothing else here knows what the folders hold. `find_git_top` says where the repository
around a folder begins.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path

from stackyard.base import files
from stackyard.base.errors import FileError

__all__ = ["PROJECT_FOLDER", "cache_folder", "data_folder", "ensure_private", "find_git_top", "state_folder"]

_APPLICATION = "stackyard"
# What runs leave beside the files that they are about.
PROJECT_FOLDER = ".stackyard"
# Everything in it, this file too.
_IGNORED_BY_GIT = b"*\n"
# Owner only, as the XDG base directory specification asks.
_PRIVATE_FOLDER = 0o700


def cache_folder() -> Path:
    """Return the folder for what can be created again: `XDG_CACHE_HOME`, else `~/.cache`."""
    return _base("XDG_CACHE_HOME", ".cache")


def data_folder() -> Path:
    """Return the folder for what must last: `XDG_DATA_HOME`, else `~/.local/share`."""
    return _base("XDG_DATA_HOME", ".local/share")


def state_folder() -> Path:
    """Return the folder for what a run leaves for the next: `XDG_STATE_HOME`, else `~/.local/state`."""
    return _base("XDG_STATE_HOME", ".local/state")


def find_git_top(here: Path) -> Path | None:
    """Return the top of the git repository that an absolute path is in; None outside of any."""
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def ensure_private(folder: Path) -> Path:
    """Make a folder, and every missing one above it, for the owner alone, and return it.

    A folder that is already there keeps its permissions. A `.stackyard`, or any folder in one, is hidden from
    git by a `.gitignore` of its own, also where it was created before.

    Raises:
        FileError: It cannot be created, or something that is no folder is in its place.
    """
    try:
        _make(folder)
    except OSError as err:
        raise FileError.from_os_error(err, "make the folder", folder) from err
    for above in (folder, *folder.parents):
        if above.name == PROJECT_FOLDER:
            _hide_from_git(above)
    return folder


def _hide_from_git(folder: Path) -> None:
    path = folder / ".gitignore"
    if not os.path.lexists(path):
        # Where nothing can be written, nothing new can be picked up by git either.
        with contextlib.suppress(FileError):
            files.make_file(path, _IGNORED_BY_GIT)


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make(folder.parent)
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER)
    except FileExistsError:
        # Another process may have made it in between, and that is as good.
        if not folder.is_dir():
            raise


def _base(variable: str, default: str) -> Path:
    """Return our folder below an XDG base; a relative base is ignored, as the specification asks."""
    base = Path(os.environ.get(variable, ""))
    return (base if base.is_absolute() else _home() / default) / _APPLICATION


def _home() -> Path:
    home = Path(os.environ.get("HOME", ""))
    if home.is_absolute():
        return home
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as err:
        raise FileError(
            "Cannot find your home folder: HOME is not set and the system does not know your user.",
            remedy="Set HOME, or XDG_CACHE_HOME, XDG_DATA_HOME and XDG_STATE_HOME, to an absolute path.",
        ) from err
