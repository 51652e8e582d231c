"""Which packages are installed in a sandboxed guest, as the guest itself recorded it on its disk.

What is read was written by the guest: no link is followed, and what is too large or no record counts as none.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from pvelab.nested.files import open_folder
from stackyard.base.documents.jsontext import parse_json

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["KERNEL", "PROXMOX", "list_installed_packages"]

PROXMOX, KERNEL = "proxmox-ve", "proxmox-default-kernel"
_FOLDER, _RECORD = "var/lib/stackyard-lab", "packages.json"
_INSTALLED = "ii"
_LARGEST_BYTES = 4 * 1024 * 1024
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_installed_packages(world: World, vmid: int) -> frozenset[str]:
    """Return the names of the packages on a guest's disk; none where no one ever looked inside of it."""
    root = world.machines.root_of(vmid)
    if root is None:
        return frozenset()
    with open_folder(root, _FOLDER) as folder:
        text = None if folder is None else _read(folder)
    try:
        record = parse_json(text or b"{}")
    except ValueError:
        return frozenset()
    entries = record.items() if isinstance(record, dict) else ()
    return frozenset(
        name for name, about in entries if isinstance(about, dict) and about.get("state") == _INSTALLED
    )


def _read(folder: int) -> bytes | None:
    try:
        descriptor = os.open(_RECORD, _OPEN_FILE, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_BYTES:
            return None
        return stream.read(_LARGEST_BYTES)
