"""What an OS template says by its name: the system and the architecture inside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.volume_names import path_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["architecture_of", "is_oci", "operating_system_of", "template_file"]

# Distributions that are set up like another one, and those that are their own kind.
_SYSTEMS: Mapping[str, str] = {
    "debian": "debian",
    "devuan": "devuan",
    "ubuntu": "ubuntu",
    "centos": "centos",
    "almalinux": "centos",
    "rockylinux": "centos",
    "rocky": "centos",
    "openeuler": "centos",
    "fedora": "fedora",
    "opensuse": "opensuse",
    "arch": "archlinux",
    "alpine": "alpine",
    "gentoo": "gentoo",
    "nixos": "nixos",
}
_ARCHITECTURES = ("amd64", "arm64", "armhf", "i386", "riscv64", "riscv32")


def template_file(world: World, node: str, volid: str) -> tuple[Document | None, str]:
    """Return the volume of a template and the path that the log shows.

    Raises:
        PveError: There is no such file.
    """
    if ":" not in volid:
        raise PveError(f"can't find file '{volid}'")
    storage, _ = parse_volume_id(volid)
    config = world.storages.require(storage, node)
    volume = world.volumes.find(volid, node)
    if volume is None:
        raise PveError(f"volume '{volid}' does not exist")
    return volume, path_of(config, volid)


def operating_system_of(volid: str) -> str:
    """Return the kind of system in a template; Proxmox leaves alone what it does not know."""
    name = volid.rpartition("/")[2].lower()
    return next(
        (kind for word, kind in _SYSTEMS.items() if re.search(rf"(?:^|[^a-z]){word}", name)), "unmanaged"
    )


def architecture_of(volid: str) -> str:
    """Return the architecture of a template."""
    return next((word for word in _ARCHITECTURES if word in volid), "amd64")


def is_oci(volume: Document | None) -> bool:
    """Return whether a template is an image pulled from a registry."""
    return volume is not None and bool(volume.get("oci"))
