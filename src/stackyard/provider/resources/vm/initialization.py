"""Cloud-init: the data of a VM for its first start, and the drive that carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import format_of, is_cloud_init
from stackyard.fields.guest import DNS
from stackyard.fields.properties import list_numbered, parse, render, text
from stackyard.fields.vm import CLOUD_INIT, CLOUD_INIT_FILES, IP_CONFIG, USER
from stackyard.provider.guests.addresses import read_ip_config, write_ip_config
from stackyard.provider.values import UNKNOWN, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.resources.vm.blocks import PriorState
    from stackyard.provider.values import Object

__all__ = [
    "MASK",
    "cloud_init_drive",
    "drive_interface",
    "find_drive",
    "initialization_params",
    "read_initialization",
]

# What Proxmox shows in place of a password.
MASK = "**********"
_INTERFACE = "ide2"


def cloud_init_drive(block: Object) -> str:
    """Return a new drive for cloud-init."""
    file_format = block.get("file_format")
    return render(
        {
            "file": f"{block.get('datastore_id') or 'local-lvm'}:cloudinit",
            "format": file_format if isinstance(file_format, str) and file_format else None,
        }
    )


def drive_interface(block: Object, current: str = "") -> str:
    """Return where the drive of cloud-init is to be attached: as configured, else where it is."""
    return str(block.get("interface") or current or _INTERFACE)


def find_drive(config: Mapping[str, Any], vm_id: int) -> str:
    """Return where the drive of cloud-init is attached; empty when there is none."""
    return next((key for key, value in config.items() if _is_drive(key, value, vm_id)), "")


def _is_drive(key: str, value: Any, vm_id: int) -> bool:
    return key.startswith(("ide", "sata", "scsi", "virtio")) and is_cloud_init(value, vm_id)


def initialization_params(state: Object, *, with_upgrade: bool) -> dict[str, Any]:
    """Return the data for cloud-init; what it does not get is None."""
    block = known_block(state, "initialization")
    if block is None:
        return {}
    account = known_block(block, "user_account") or {}
    password = account.get("password")
    told = {name: value for name, value in block.items() if value is not UNKNOWN}
    params = {
        "cicustom": CLOUD_INIT_FILES.write_text(told) or None,
        **DNS.write(known_block(block, "dns") or {}),
        **USER.write(account),
        "cipassword": password if password and password != MASK else None,
        **CLOUD_INIT.write(told),
    }
    if not with_upgrade or not isinstance(block.get("upgrade"), bool):
        del params["ciupgrade"]
    for number, ip_config in enumerate(block.get("ip_config") or ()):
        params[f"ipconfig{number}"] = IP_CONFIG.write_text(write_ip_config(ip_config or {})) or None
    return params


def read_initialization(config: Mapping[str, Any], shown: PriorState, vm_id: int) -> Object:
    """Return the block of cloud-init; a clone shows only the parts that its configuration has."""
    known = known_block(shown.known, "initialization")
    if shown.is_clone and known is None:
        return {}
    block = {**_read_drive(config, vm_id), **_read_dns(config), **_read_ip(config), **_read_account(config)}
    told = {"cicustom", "citype", "ciupgrade"} & config.keys()
    if not block and not told:
        return {"initialization": []}
    block |= _read_rest(config)
    if shown.is_clone and known is not None:
        for name in ("user_account", "dns", "ip_config"):
            if not known.get(name):
                block.pop(name, None)
    return {"initialization": [block]}


def _read_drive(config: Mapping[str, Any], vm_id: int) -> Object:
    interface = find_drive(config, vm_id)
    if not interface:
        return {}
    found = parse(config[interface], "file")
    storage = found.get("file", "").partition(":")[0]
    return {"interface": interface, "datastore_id": storage, "file_format": format_of(found)}


def _read_dns(config: Mapping[str, Any]) -> Object:
    if config.get("searchdomain") is None and config.get("nameserver") is None:
        return {}
    return {"dns": [DNS.read(config)]}


def _read_ip(config: Mapping[str, Any]) -> Object:
    found = {number: parse(value, "ip") for number, value in list_numbered(config, "ipconfig")}
    if not found:
        return {}
    listed = [found.get(number, {}) for number in range(max(found) + 1)]
    return {"ip_config": [read_ip_config(one) for one in listed]}


def _read_account(config: Mapping[str, Any]) -> Object:
    if not {"cipassword", "sshkeys", "ciuser"} & config.keys():
        return {}
    return {"user_account": [{**USER.read(config), "password": text(config.get("cipassword"))}]}


def _read_rest(config: Mapping[str, Any]) -> Object:
    return {**CLOUD_INIT_FILES.read_text(config.get("cicustom", "")), **CLOUD_INIT.read(config)}
