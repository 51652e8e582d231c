"""Machine types of VMs: the board that QEMU emulates, with its version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.params import properties
from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu.settings import QEMU_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.world import World

__all__ = ["is_q35", "require_machine_version", "unsupported_machine"]

_DECLARED_AT = "POST /nodes/{node}/qemu"
_VERSIONED = re.compile(r"(pc(?:-i440fx|-q35)?|virt)-(\d+)\.(\d+)(?:\.\d+)?(?:\+pve(\d+))?(\.pxe)?")
# What Proxmox has changed since a version of QEMU came out, counted; none where a version is not listed.
_REVISIONS = {(4, 1): 2, (9, 2): 1, (10, 0): 1, (11, 0): 2}
# Which versions there have been; older ones have gone from QEMU.
_MINORS = {2: range(6, 13), 3: range(2), 4: range(3), **{major: range(3) for major in range(5, 10)}}
_INSTALLED = tuple(int(part) for part in QEMU_VERSION.split(".")[:2])


def is_q35(world: World, config: Mapping[str, Any]) -> bool:
    """Tell whether a VM has a board with PCI Express."""
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
    newest = _REVISIONS.get(version, 0)
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
    found = _VERSIONED.fullmatch(name)
    if found is None:
        return None
    major, minor = int(found[2]), int(found[3])
    known = (major, minor) <= _INSTALLED and minor in _MINORS.get(major, range(_INSTALLED[1] + 1))
    return None if known and major >= min(_MINORS) else name.partition("+")[0]


def _type(world: World, config: Mapping[str, Any]) -> str:
    text = config.get("machine")
    if not text:
        return ""
    return str(
        properties.parse(world.facts.schema(_DECLARED_AT, "machine")["format"], str(text)).get("type", "")
    )
