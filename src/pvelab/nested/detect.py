"""Which guests are Proxmox nodes themselves: those that boot with Proxmox VE on their disk.

It came with the image of the boot disk, whose name says so: `pve` or `proxmox-ve` as a word of it, as in
`debian-13-pve.qcow2`, `pve-9.img` or `proxmox-ve_9.0.raw`. Or it was installed: a sandboxed guest in which
the package `proxmox-ve` is installed is a node from its next boot on. Clones of such a guest are nodes too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pvelab.nested.installed import PROXMOX, list_installed_packages
from pvelab.world.guests.lineage import image_of

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["is_node", "is_node_image"]

_WORD = re.compile(r"(?:^|[^a-z0-9])(?:pve|proxmox[-_]?ve)(?:$|[^a-z]|\d)", re.IGNORECASE)


def is_node_image(name: str) -> bool:
    """Return whether a guest made from an image of this name is a Proxmox node."""
    return _WORD.search(name) is not None


def is_node(world: World, guest: Document) -> bool:
    """Return whether a guest is a Proxmox node itself."""
    if guest["type"] != "qemu":
        return False
    image = image_of(world, guest)
    if image is not None and is_node_image(str(image["name"])):
        return True
    return PROXMOX in list_installed_packages(world, int(guest["vmid"]))
