"""Machine types of VMs: the board that QEMU emulates, with its version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.machine_versions import QEMU_VERSION, REVISIONS, is_machine
from pvelab.server.params import properties
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["is_q35", "require_machine_version", "unsupported_machine"]

_DECLARED_AT = "POST /nodes/{node}/qemu"
_VERSIONED = re.compile(r"(pc(?:-i440fx|-q35)?|virt)-(\d+)\.(\d+)(?:\.\d+)?(?:\+pve(\d+))?(\.pxe)?")
_INSTALLED = tuple(int(part) for part in QEMU_VERSION.split(".")[:2])


def is_q35(world: World, config: Mapping[str, Any]) -> bool:
    """Return whether a VM has a board with PCI Express."""
    return "q35" in _type(world, config)


def require_machine_version(world: World, config: Mapping[str, Any], node: str) -> None:
    """Refuse to start a VM whose machine type is newer than what its node has installed.

    Raises:
        PveError: QEMU or the package of Proxmox around it is too old.
    """
    found = _VERSIONED.fullmatch(_type(world, config))
    if found is None:
        return
    version, revision = (int(found[2]), int(found[3])), int(found[4] or 0)
    name = f"{found[1]}-{version[0]}.{version[1]}+pve{revision}{found[5] or ''}"
    if version > _INSTALLED:
        raise PveError(
            f"Installed QEMU version '{QEMU_VERSION}' is too old to run machine type '{name}',"
            f" please upgrade node '{node}'"
        )
    newest = REVISIONS.get(version, 0)
    if revision > newest:
        raise PveError(
            f"Installed qemu-server (max feature level for {version[0]}.{version[1]} is pve{newest}) is too"
            f" old to run machine type '{name}', please upgrade node '{node}'"
        )


def unsupported_machine(world: World, config: Mapping[str, Any]) -> str | None:
    """Return the machine type of a VM if QEMU does not know it, else None."""
    name, is_x86 = _type(world, config), config.get("arch", "x86_64") == "x86_64"
    if name and name.startswith("virt") == is_x86:
        return name.partition("+")[0]
    if _VERSIONED.fullmatch(name) is None:
        return None
    bare = name.removesuffix(".pxe").partition("+")[0]
    return None if is_machine(bare) else bare


def _type(world: World, config: Mapping[str, Any]) -> str:
    text = config.get("machine")
    if not text:
        return ""
    return str(
        properties.parse(world.facts.schema(_DECLARED_AT, "machine")["format"], str(text)).get("type", "")
    )
