"""What a guest knows of itself when it boots: name, system, addresses, memory, and its cloud-init data."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.userdata import hostname_of
from pvelab.machines.clouddata import cloud_data, list_host_keys
from pvelab.nested.detect import is_node
from pvelab.nested.installed import KERNEL, list_installed_packages
from pvelab.nested.lans import gateway_of
from pvelab.nested.ports import API_PORT, OWN_PORTS, PORTS
from pvelab.world.guests import addresses
from pvelab.world.guests.rows import cpu_count, memory_bytes

if TYPE_CHECKING:
    from pvelab.world.guests.addresses import Interface
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["boot_facts", "host_name"]

RELEASE = {
    "name": "Debian GNU/Linux 12",
    "codename": "bookworm",
    "full_version": "12.9",
    "os_release": """PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
""",
}
# Of the guest's kernel, which is this machine's own in truth.
DEBIAN_KERNEL, PVE_KERNEL = "6.1.0-30-amd64", "6.8.12-4-pve"


def host_name(guest: Document) -> str:
    """Return what a guest calls itself."""
    if guest["type"] == "qemu":
        return hostname_of(int(guest["vmid"]), guest["config"])[0]
    return str(guest["config"].get("hostname", f"CT{guest['vmid']}")).partition(".")[0]


def boot_facts(world: World, guest: Document) -> dict[str, Any]:
    """Return everything that a guest gets at its boot."""
    cloud = cloud_data(world, guest)
    node = str(guest["node"])
    dns = world.store.get("dns", node) or {}
    config = guest["config"]
    servers = str(config.get("nameserver", "")).split() or [
        str(dns[key]) for key in ("dns1", "dns2", "dns3") if dns.get(key)
    ]
    identity = f"{guest['vmid']}|{config.get('smbios1') or config.get('rootfs') or ''}"
    return {
        "vmid": int(guest["vmid"]),
        "kind": str(guest["type"]),
        "hostname": host_name(guest),
        "release": RELEASE,
        "machine_id": hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest(),
        "nameservers": servers,
        "search": str(config.get("searchdomain", dns.get("search", ""))),
        "interfaces": [
            _interface(one) for one in (addresses.LOOPBACK, *addresses.addresses_of(world, guest))
        ],
        "gateways": _gateways(world, guest),
        "is_node": is_node(world, guest),
        "kernel": _kernel(world, guest),
        "own_ports": list(OWN_PORTS) + ([API_PORT] if is_node(world, guest) else []),
        "ports": sorted({*PORTS, *world.nest.exposed}),
        "memory": memory_bytes(config),
        "cpus": cpu_count(guest),
        "alternatives": _alternatives(),
        "made": str(guest["vmid"]),
        "cloud": cloud,
        "host_keys": list(list_host_keys(cloud)),
    }


def _kernel(world: World, guest: Document) -> str:
    """Return which kernel a guest booted with: that of Proxmox VE where it is installed, else Debian's."""
    is_pve = is_node(world, guest) or KERNEL in list_installed_packages(world, int(guest["vmid"]))
    return PVE_KERNEL if is_pve else DEBIAN_KERNEL


def _interface(interface: Interface) -> dict[str, Any]:
    return {
        "name": interface.name,
        "mac": interface.mac.lower(),
        "addresses": [
            {"address": one.address, "prefix": one.prefix, "family": one.family}
            for one in interface.addresses
        ],
    }


def _gateways(world: World, guest: Document) -> list[dict[str, str]]:
    """Return the routers that the guest was given, or that DHCP told it."""
    return [
        {"interface": interface.name, "via": router}
        for interface in addresses.addresses_of(world, guest)
        if (router := gateway_of(world, guest, interface)) is not None
    ]


def _alternatives() -> dict[str, str]:
    """Return the links of this machine that its programs go through."""
    folder = "/etc/alternatives"
    found = {}
    try:
        for entry in os.scandir(folder):
            if entry.is_symlink():
                found[entry.name] = os.readlink(entry.path)
    except OSError:
        return {}
    # Only what is a program: manuals and the like are many.
    return {name: target for name, target in found.items() if target.startswith(("/usr/bin/", "/usr/sbin/"))}
