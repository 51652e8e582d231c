"""What a guest is where its entry is silent: each default with the reason that `explain` gives for it.

An entry is compact on purpose; these tables are the rest of it. A value that is `null` counts as not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stackyard.sources.deployment.scope import DEFAULT_BRIDGE, DEFAULT_DATASTORE, DEFAULT_TEMPLATE, Scope

__all__ = ["CONTAINER", "PCT_REMOTE", "VM", "Default", "complete", "derive_mac"]

Entry = Mapping[str, Any]
# What a value is created from: the object, the key of the guest, and all that is known of it so far.
Make = Callable[[Scope, str, Entry], Any]

PCT_REMOTE = "community.proxmox.proxmox_pct_remote"
_MAC_OCTETS = 5
_LARGEST_OCTET = 254


@dataclass(frozen=True, slots=True)
class Default:
    """One field of a guest.

    Attributes:
        name: What it is called.
        make: What it is where the entry does not say.
        why: Where that comes from.
        is_merged: Whether it is created also where the entry says something, and has that inside.
    """

    name: str
    make: Make
    why: str = "default"
    is_merged: bool = False


def complete(table: tuple[Default, ...], scope: Scope, key: str, entry: Entry) -> dict[str, Any]:
    """Return a guest with every field, in the order of the table; later ones may look at earlier ones."""
    known: dict[str, Any] = {name: value for name, value in entry.items() if value is not None}
    for field in table:
        if field.is_merged or field.name not in known:
            known[field.name] = field.make(scope, key, known)
    return known


def make_fixed(name: str, value: Any, why: str = "default") -> Default:
    """Return a field that is the same for all."""
    return Default(name, lambda scope, key, known: value, why)


def derive_mac(key: str) -> str:
    """Return the MAC address of a guest with DHCP: from its key, so that a new name keeps the lease."""
    digest = hashlib.md5(key.encode(), usedforsecurity=False).digest()[:_MAC_OCTETS]
    return ":".join(["02", *(f"{octet:02X}" for octet in digest)])


def _tags(kind: str) -> Default:
    def make(scope: Scope, key: str, known: Entry) -> list[str]:
        del key
        given = known.get("tags")
        return sorted({*(("terraform", kind) if given is None else given), scope.environment})

    return Default("tags", make, f"`terraform`, `{kind}` where none are written, and the environment", True)


def _inside(name: str, make: Callable[[Scope], Mapping[str, Any]], why: str = "default") -> Default:
    """Return a field that is an object with defaults of its own."""

    def merge(scope: Scope, key: str, known: Entry) -> dict[str, Any]:
        del key
        return {**make(scope), **_drop_null(known.get(name) or {})}

    return Default(name, merge, why, True)


def _inside_each(name: str, make: Callable[[Scope, int], Mapping[str, Any]], *, least: int = 0) -> Default:
    """Return a field that is a list of objects, each with defaults of its own."""

    def merge(scope: Scope, key: str, known: Entry) -> list[dict[str, Any]]:
        del key
        given = known.get(name) or [{}] * least
        return [{**make(scope, place), **_drop_null(one)} for place, one in enumerate(given)]

    return Default(name, merge, "default", True)


def _drop_null(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}


def startup_order(vm_id: int) -> int:
    """Return when a guest starts: by its id, long ids by their first digits."""
    return vm_id if vm_id < 1000 else vm_id // 1000


def _dhcp(scope: Scope, key: str, known: Entry) -> bool:
    del key
    if _read_pinned_address(known) == "dhcp":
        return True
    return not scope.has_networks and _read_pinned_address(known) is None


def _read_pinned_address(known: Entry) -> str | None:
    address = (known.get("ip_config") or {}).get("ipv4_address")
    return address if isinstance(address, str) else None


def _address(scope: Scope, key: str, known: Entry) -> str | None:
    """Return the address with its prefix length, `dhcp`, or None where it cannot be derived."""
    del key
    if known["dhcp"]:
        return "dhcp"
    network = scope.networks.get(known["vlan"])
    pinned = _read_pinned_address(known)
    if pinned is not None:
        return pinned if "/" in pinned or network is None else f"{pinned}/{network.prefixlen}"
    vm_id = known["vm_id"]
    if network is None or vm_id > _LARGEST_OCTET or vm_id >= network.num_addresses:
        return None
    return f"{network[vm_id]}/{network.prefixlen}"


def _gateway(scope: Scope, key: str, known: Entry) -> str | None:
    del key
    if known["dhcp"]:
        return None
    pinned = (known.get("ip_config") or {}).get("ipv4_gateway")
    return pinned or scope.gateway_of(known["vlan"])


def _resolvers(scope: Scope, key: str, known: Entry) -> list[str]:
    del scope, key
    return [] if known["dhcp"] or known["gateway"] is None else [known["gateway"]]


def _features(scope: Scope, key: str, known: Entry) -> dict[str, Any]:
    del scope, key
    is_docker = "docker" in known["tags"]
    base = {"nesting": is_docker, "keyctl": is_docker, "fuse": False, "mount": []}
    return {**base, **_drop_null(known.get("features") or {})}


def _container_card(scope: Scope, place: int) -> Mapping[str, Any]:
    return {"name": f"eth{place}", "bridge": scope.word("bridge", DEFAULT_BRIDGE), "firewall": True}


def _vm_card(scope: Scope, place: int) -> Mapping[str, Any]:
    del place
    return {"bridge": scope.word("bridge", DEFAULT_BRIDGE), "model": "virtio", "firewall": False}


_DISK = {
    "file_format": "raw",
    "iothread": True,
    "ssd": False,
    "discard": "ignore",
    "replicate": True,
}


def _container_keys(scope: Scope, key: str, known: Entry) -> list[str]:
    del key
    own = (known.get("user_account") or {}).get("keys") or []
    shared = scope.data.get("vm_ssh_public_key")
    return list(dict.fromkeys([*own, *([shared] if shared else [])]))


_ADDRESSES = (
    Default("dhcp", _dhcp, "there is no `network_cidrs` to derive an address from, or the address is `dhcp`"),
    Default("address", _address, "host number `vm_id` of the VLAN's network, or pinned by `ip_config`"),
    Default("gateway", _gateway, "host 1 of the VLAN's network"),
    Default("dns_servers", _resolvers, "the gateway of the VLAN"),
    Default("domain", lambda s, k, g: s.domain_of(g["vlan"]), "`network_domains` of the VLAN, else `domain`"),
    Default(
        "mac", lambda s, k, g: derive_mac(k) if g["dhcp"] else None, "from the key, for guests with DHCP"
    ),
    Default("vlan_tag", lambda s, k, g: s.vlans.get(g["vlan"]), "`vlan_ids`, else the built-in table"),
)

_SHARED = (
    Default("node_name", lambda s, k, g: s.node, "`proxmox_node`"),
    make_fixed("pool_id", None),
    make_fixed("protection", False),
    Default("startup_order", lambda s, k, g: startup_order(g["vm_id"]), "from `vm_id`"),
    make_fixed("ha", False),
    make_fixed("ha_affinity_group", None),
    make_fixed("ha_replication_target", None),
    make_fixed("firewall", None),
    make_fixed("replication", None),
    make_fixed("backup", None, "as each disk says"),
    make_fixed("summary", None),
)

CONTAINER: tuple[Default, ...] = (
    *_SHARED,
    *_ADDRESSES,
    Default(
        "description", lambda s, k, g: f"{g['hostname']} ({s.environment})", "from hostname and environment"
    ),
    make_fixed("cpu_cores", 2),
    make_fixed("memory_dedicated", 512),
    Default("memory_swap", lambda s, k, g: g["memory_dedicated"], "as much as `memory_dedicated`"),
    _tags("container"),
    _inside(
        "root_disk",
        lambda s: {"datastore_id": s.word("datastore_default", DEFAULT_DATASTORE), "size": 16},
        "`datastore_default`, else local-zfs; 16 GB",
    ),
    _inside_each("mount_points", lambda s, place: {"size": None, "backup": True, "read_only": False}),
    _inside_each("device_passthrough", lambda s, place: {"deny_write": False}),
    _inside_each("network_interfaces", _container_card, least=1),
    make_fixed("unprivileged", False),
    make_fixed("os_type", "debian"),
    make_fixed("start_on_boot", True),
    Default(
        "ct_template",
        lambda s, k, g: s.word("proxmox_ct_template_debian", DEFAULT_TEMPLATE),
        "`proxmox_ct_template_debian`, else the template that comes with stackyard",
    ),
    Default("features", _features, "nesting and keyctl with the tag `docker`, else none", True),
    Default("ssh_keys", _container_keys, "`user_account.keys` and `vm_ssh_public_key`"),
    make_fixed("ansible_connection", PCT_REMOTE),
)

VM: tuple[Default, ...] = (
    Default("name", lambda s, k, g: g.get("hostname") or k, "the key"),
    *_SHARED,
    *_ADDRESSES,
    Default("description", lambda s, k, g: f"{g['name']} ({s.environment})", "from name and environment"),
    make_fixed("cpu_cores", 4),
    make_fixed("cpu_type", "x86-64-v2-AES"),
    make_fixed("memory_dedicated", 2048),
    Default("memory_floating", lambda s, k, g: g["memory_dedicated"], "as much as `memory_dedicated`"),
    make_fixed("memory_hotplug", False),
    make_fixed("migrate", False),
    make_fixed("on_boot", True),
    make_fixed("started", True),
    make_fixed("reboot_after_update", True),
    make_fixed("agent_enabled", True),
    make_fixed("os_type", "l26"),
    Default(
        "bios",
        lambda s, k, g: "ovmf" if g["os_type"] == "win11" or g.get("efi_disk") else "seabios",
        "ovmf for Windows 11 and with an `efi_disk`, else seabios",
    ),
    make_fixed("vga", "std"),
    _tags("vm"),
    _inside("boot_disk", lambda s: {"datastore_id": "local-lvm", "interface": "scsi0", "size": 64, **_DISK}),
    _inside_each(
        "additional_disks",
        lambda s, place: {"datastore_id": s.word("datastore_id", DEFAULT_DATASTORE), **_DISK},
    ),
    _inside_each("network_interfaces", _vm_card, least=1),
    _inside("user_account", lambda s: {"username": "debian"}),
    make_fixed("ansible_connection", "ssh"),
)
