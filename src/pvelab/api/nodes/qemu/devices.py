"""The devices of a VM that are on one node only, and those that are mapped on several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.memory import blockers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["Mapped", "local_devices", "missing_mappings"]

Mapped = dict[str, dict[str, Any]]

_DEVICE = re.compile(r"(usb|hostpci|serial|parallel|virtiofs)\d+")
_MAPPINGS = {"usb": "mapping_usb", "hostpci": "mapping_pci", "virtiofs": "mapping_dir"}


def local_devices(world: World, config: Mapping[str, Any], *, running: bool) -> tuple[list[str], Mapped]:
    """Return the devices that keep a VM on its node, and those that are mapped: `name`, `live-migration`."""
    blocking = blockers(config) if running else []
    mapped: Mapped = {}
    if "ivshmem" in config:
        blocking.append("ivshmem")
    for key, value in config.items():
        device = _DEVICE.fullmatch(key)
        if device is None or _is_free(str(value)):
            continue
        name = _mapping_name(device[1], str(value))
        if name is not None:
            mapped[key] = {"name": name}
            section = world.store.get(_MAPPINGS[device[1]], name) or {}
            if section.get("live-migration-capable"):
                mapped[key]["live-migration"] = 1
                continue
            if device[1] == "hostpci" and not running:
                continue
        blocking.append(key)
    return blocking, mapped


def missing_mappings(world: World, mapped: Mapped, node: str) -> list[str]:
    """Return the mapped devices of a VM that a node does not have."""
    missing = []
    for key, device in sorted(mapped.items()):
        section = world.store.get(_MAPPINGS[key.rstrip("0123456789")], device["name"]) or {}
        if not any(f"node={node}" in str(entry).split(",") for entry in section.get("map", ())):
            missing.append(key)
    return missing


def _is_free(value: str) -> bool:
    """Return whether a device is created by QEMU itself: a socket, or what a SPICE client has."""
    return value == "socket" or value.partition(",")[0].lower() in ("spice", "host=spice")


def _mapping_name(kind: str, value: str) -> str | None:
    given = dict(part.partition("=")[::2] for part in value.split(","))
    if kind == "virtiofs":
        return given.get("dirid", value.partition(",")[0])
    return given.get("mapping")
