"""A whole VM as parameters of the API, but for its disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import join_tags
from stackyard.fields.vm import BASICS
from stackyard.provider.resources.vm.basics import basics_params, cpu_params, memory_params
from stackyard.provider.resources.vm.devices import device_params
from stackyard.provider.resources.vm.drives import cdrom_params
from stackyard.provider.resources.vm.initialization import initialization_params
from stackyard.provider.resources.vm.network import network_params
from stackyard.provider.resources.vm.passthrough import passthrough_params
from stackyard.provider.values import get_known, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["boot_text", "clone_params", "clone_unset", "whole_params"]

# Attributes whose default value says nothing about a clone: it keeps what its source has.
_SILENT = {row.name: (row.property_name, row.usual) for row in BASICS}


def whole_params(state: Object, vm_id: int) -> dict[str, Any]:
    """Return everything that a VM has beside disks, with defaults for what its configuration leaves out."""
    operating_system = known_block(state, "operating_system") or {}
    params = {
        **basics_params(state),
        **cpu_params(state),
        **memory_params(state, vm_id),
        **device_params(state),
        **passthrough_params(state),
        **network_params(state),
        **initialization_params(state, with_upgrade=True),
        "ostype": operating_system.get("type") or "other",
        "boot": boot_text(state),
    }
    return {key: value for key, value in params.items() if value is not None}


def boot_text(state: Object) -> str | None:
    """Return the order of booting: as configured, else the first disks and the network."""
    order = get_known(state, "boot_order")
    if not order:
        order = _usual_order(state)
    return f"order={';'.join(order)}" if order else None


def _usual_order(state: Object) -> list[str]:
    interfaces = {str(disk["interface"]) for disk in get_known(state, "disk") or ()}
    disks = [first for first in ("ide0", "sata0", "scsi0", "virtio0") if first in interfaces]
    cards = ["net0"] if "net0" in network_params(state) else []
    return [*cdrom_params(state), *disks, *cards]


def clone_params(state: Object, vm_id: int) -> dict[str, Any]:
    """Return what the configuration of a clone says, and nothing that it leaves to its source."""
    params: dict[str, Any] = {}
    for attribute, (key, default) in _SILENT.items():
        if state.get(attribute) not in (None, default):
            params[key] = state[attribute]
    if state.get("tags"):
        params["tags"] = join_tags(state["tags"])
    if get_known(state, "hotplug"):
        params["hotplug"] = state["hotplug"]
    if get_known(state, "boot_order"):
        params["boot"] = boot_text(state)
    params["onboot"] = bool(state["on_boot"])
    devices = device_params(state)
    if known_block(state, "agent") is None:
        del devices["agent"]
    params |= devices | passthrough_params(state) | network_params(state)
    params |= initialization_params(state, with_upgrade=True)
    if known_block(state, "cpu") is not None:
        params |= cpu_params(state)
    if known_block(state, "memory") is not None:
        params |= memory_params(state, vm_id)
    operating_system = known_block(state, "operating_system")
    if operating_system is not None:
        params["ostype"] = operating_system.get("type")
    return {key: value for key, value in params.items() if value is not None}


def clone_unset(state: Object, config: Mapping[str, Any]) -> list[str]:
    """Return what a clone has from its source and its configuration excludes."""
    unset: list[str] = []
    for attribute, prefix in (("network_device", "net"), ("serial_device", "serial")):
        blocks = get_known(state, attribute)
        if blocks:
            kept = network_params(state) if prefix == "net" else {f"serial{i}" for i in range(len(blocks))}
            unset += [
                key
                for key in config
                if key.startswith(prefix) and key[len(prefix) :].isdigit() and key not in kept
            ]
    if config.get("hookscript") and not state.get("hook_script_file_id"):
        unset.append("hookscript")
    return unset
