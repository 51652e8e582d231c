"""Cloud-init: what a VM is told at its first start, and the drive that tells it."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.vm.blocks import Shown, known_block
from stackyard.provider.resources.vm.disks import is_cloud_init
from stackyard.provider.resources.vm.properties import flag, numbered, parse, render, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["MASK", "cloud_init_drive", "find_drive", "initialization_params", "read_initialization"]

# What Proxmox shows in place of a password.
MASK = "**********"
_FILES = {
    "meta": "meta_data_file_id",
    "network": "network_data_file_id",
    "user": "user_data_file_id",
    "vendor": "vendor_data_file_id",
}


def cloud_init_drive(block: Object) -> str:
    """Return a new drive for cloud-init."""
    file_format = block.get("file_format")
    return render(
        {
            "file": f"{block.get('datastore_id') or 'local-lvm'}:cloudinit",
            "format": file_format if isinstance(file_format, str) and file_format else None,
        }
    )


def find_drive(config: Mapping[str, Any], vm_id: int) -> str:
    """Return where the drive of cloud-init is attached; empty when there is none."""
    return next((key for key, value in config.items() if _is_drive(key, value, vm_id)), "")


def _is_drive(key: str, value: Any, vm_id: int) -> bool:
    return key.startswith(("ide", "sata", "scsi", "virtio")) and is_cloud_init(value, vm_id)


def initialization_params(state: Object, *, with_upgrade: bool) -> dict[str, Any]:
    """Return what cloud-init is told; what is not told is None."""
    block = known_block(state, "initialization")
    if block is None:
        return {}
    dns = known_block(block, "dns") or {}
    account = known_block(block, "user_account") or {}
    files = {name: block.get(attribute) for name, attribute in _FILES.items()}
    password, keys = account.get("password"), account.get("keys") or ()
    params = {
        "cicustom": render({name: file for name, file in files.items() if isinstance(file, str) and file})
        or None,
        "nameserver": " ".join(dns.get("servers") or ()) or None,
        "searchdomain": dns.get("domain") or None,
        "cipassword": password if password and password != MASK else None,
        "ciuser": account.get("username") or None,
        # Escaped once more than everything else.
        "sshkeys": urllib.parse.quote("\n".join(key or "" for key in keys), safe="") if keys else None,
        "citype": block.get("type") if isinstance(block.get("type"), str) and block["type"] else None,
    }
    if with_upgrade and isinstance(block.get("upgrade"), bool):
        params["ciupgrade"] = block["upgrade"]
    for number, ip_config in enumerate(block.get("ip_config") or ()):
        params[f"ipconfig{number}"] = _ip_text(ip_config or {}) or None
    return params


def _ip_text(ip_config: Object) -> str:
    ipv4, ipv6 = known_block(ip_config, "ipv4") or {}, known_block(ip_config, "ipv6") or {}
    return render(
        {
            "gw": ipv4.get("gateway") or None,
            "gw6": ipv6.get("gateway") or None,
            "ip": ipv4.get("address") or None,
            "ip6": ipv6.get("address") or None,
        }
    )


def read_initialization(config: Mapping[str, Any], shown: Shown, vm_id: int) -> Object:
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
    storage, _, path = found.get("file", "").partition(":")
    suffix = path.rpartition(".")[2] if "." in path else ""
    return {
        "interface": interface,
        "datastore_id": storage,
        "file_format": found.get("format") or suffix or None,
    }


def _read_dns(config: Mapping[str, Any]) -> Object:
    domain, servers = config.get("searchdomain"), config.get("nameserver")
    if domain is None and servers is None:
        return {}
    return {"dns": [{"domain": text(domain), "servers": text(servers).split(" ") if servers else []}]}


def _read_ip(config: Mapping[str, Any]) -> Object:
    found = {number: parse(value, "ip") for number, value in numbered(config, "ipconfig")}
    if not found:
        return {}
    listed = [found.get(number, {}) for number in range(max(found) + 1)]
    return {"ip_config": [{"ipv4": _read_one(one, ""), "ipv6": _read_one(one, "6")} for one in listed]}


def _read_one(found: Mapping[str, str], version: str) -> list[Object]:
    address, gateway = found.get(f"ip{version}"), found.get(f"gw{version}")
    if address is None and gateway is None:
        return []
    return [{"address": text(address), "gateway": text(gateway)}]


def _read_account(config: Mapping[str, Any]) -> Object:
    if not {"cipassword", "sshkeys", "ciuser"} & config.keys():
        return {}
    keys = urllib.parse.unquote_plus(text(config.get("sshkeys"))).strip()
    account = {
        "keys": keys.split("\n") if keys else [],
        "password": text(config.get("cipassword")),
        "username": text(config.get("ciuser")),
    }
    return {"user_account": [account]}


def _read_rest(config: Mapping[str, Any]) -> Object:
    files = parse(config.get("cicustom", ""), "")
    rest: Object = {attribute: text(files.get(name)) for name, attribute in _FILES.items()}
    rest["type"] = text(config.get("citype"))
    rest["upgrade"] = flag(config.get("ciupgrade"), default=True)
    return rest
