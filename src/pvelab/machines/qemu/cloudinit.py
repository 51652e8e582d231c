"""The cloud-init drive of a real guest: its configuration and its snippets, as NoCloud reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.api.nodes.qemu.userdata import render
from pvelab.machines.qemu.iso import write_iso

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["seed_image"]

_FILES = {"user": "user-data", "meta": "meta-data", "network": "network-config", "vendor": "vendor-data"}


def seed_image(world: World, guest: Document) -> bytes:
    """Return the CD image of a VM's cloud-init drive, for one that is read as NoCloud.

    The snippets of `cicustom` take the place of what Proxmox would write; vendor data is there only then.
    """
    config, node, vmid = guest["config"], str(guest["node"]), int(guest["vmid"])
    custom = dict(part.partition("=")[::2] for part in str(config.get("cicustom", "")).split(",") if part)
    files: dict[str, bytes] = {}
    for part, name in _FILES.items():
        given = _snippet(world, node, custom[part]) if part in custom else None
        if given is not None:
            files[name] = given
        elif part != "vendor":
            files[name] = render(
                world, node, vmid, {**config, "citype": "nocloud"}, part=part, masked=False
            ).encode()
    return write_iso("cidata", files)


def _snippet(world: World, node: str, volid: str) -> bytes | None:
    volume = world.volumes.find(volid, node)
    return world.blobs.read(str(volume["sha256"])) if volume is not None and "sha256" in volume else None
