"""The names of everything in a site, by the names of its files: nothing is read."""

from __future__ import annotations

import os
from pathlib import Path

from stackyard.base.errors import FileError
from stackyard.sources.site.own_code.find import ENVS, EXTRA, list_env_folders

__all__ = ["KINDS", "PLACES", "Stamp", "list_names", "names_in", "stamp_of"]

# Every file of a site with what shows whether it was written since: its time, size and inode.
Stamp = frozenset[tuple[str, int, int, int]]

# Where own code keeps modules that several envs call.
_MODULES = "modules"
# What each folder defines. Older sites have `vms` and `v2`; newer ones have what was in `v2` at the top.
PLACES: tuple[tuple[str, str], ...] = (
    ("hosts", "hosts"),
    ("nodes", "nodes"),
    ("templates", "vms"),
    ("presets", "vms/presets"),
    ("presets", "presets"),
    ("presets", "v2/presets"),
    ("postures", "postures"),
    ("postures", "v2/postures"),
    ("specs", "specs"),
    ("specs", "v2/specs"),
    ("envs", "envs"),
    ("manifests", "manifests"),
    ("hypervisors", "hypervisors"),
)
KINDS = tuple(dict.fromkeys(kind for kind, _ in PLACES))


def names_in(folder: Path) -> list[str]:
    """Return the names of the files in a folder in order; none where there is no folder.

    Raises:
        FileError: The folder is there and cannot be read, or something else is in its place.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir() and entry.name[0] != ".")
    except FileNotFoundError as err:
        if folder.is_symlink() or folder.parent.is_symlink():
            # A link that leads nowhere is not the same as no folder: the files are missing, not unwanted.
            raise FileError.from_os_error(err, "read the folder", folder) from err
        return []
    except OSError as err:
        raise FileError.from_os_error(err, "read the folder", folder) from err


def list_names(root: Path) -> dict[str, list[str]]:
    """Return the names of everything in a site by kind."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, path in PLACES:
        found[kind].update(
            name.removesuffix(".yaml") for name in names_in(root / path) if name.endswith(".yaml")
        )
    return {kind: sorted(names) for kind, names in found.items()}


def stamp_of(root: Path) -> Stamp:
    """Return what changes whenever a file of a site is written, added or removed; no file is read."""
    found = set()
    for folder in ("", *(path for _, path in PLACES), *_list_code_folders(root)):
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    if not entry.is_dir():
                        seen = entry.stat()
                        found.add((f"{folder}/{entry.name}", seen.st_mtime_ns, seen.st_size, seen.st_ino))
        except OSError:
            # What cannot be looked at is found out by anyone who reads it.
            continue
    return frozenset(found)


def _list_code_folders(root: Path) -> list[str]:
    """Return the folders of own code and its local modules, with every folder below them."""
    tops = [EXTRA, _MODULES, *(f"{ENVS}/{name}" for name in list_env_folders(root).values())]
    return [os.path.relpath(above, root) for top in tops for above, _, _ in os.walk(root / top)]
