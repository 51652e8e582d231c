"""Objects to try things with: the container of the seed page as it is written there, and larger ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stackyard.clients.objects import MemoryObjects
from stackyard.sources.deployment.embedded import EmbeddedStore
from stackyard.sources.deployment.settings import ObjectLocation, SettingsFile
from stackyard.sources.deployment.text import parse
from stackyard.sources.deployment.validate import Rules, ValidatedObject, check

__all__ = [
    "CONTAINER",
    "SMALL",
    "WHOLE",
    "checked",
    "codes",
    "edited",
    "large",
    "memory_store",
    "place_in",
    "text_of",
]

# As the page of the contract has it, word for word.
CONTAINER: dict[str, Any] = {
    "vm_id": 123,
    "hostname": "my-container",
    "description": "What it runs",
    "cpu_cores": 2,
    "memory_dedicated": 2048,
    "vlan": "compute",
    "tags": ["terraform", "container"],
    "pool_id": "infrastructure",
    "root_disk": {"size": 16},
}

# The least around it that the contract asks for.
SMALL: dict[str, Any] = {
    "_comment": "the smallest object",
    "proxmox_node": "pve1",
    "nodes": {"pve1": {"role": "node-1"}},
    "pools": {"infrastructure": {"comment": "what everything needs"}},
    "containers": {"_containers": "one line each", "my-container": CONTAINER},
}

# Something of everything.
WHOLE: dict[str, Any] = {
    "_about": "everything once",
    "environment": "homelab",
    "domain": "example.com",
    "proxmox_node": "pve1",
    "proxmox_user": "root",
    "vm_ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA9lZ3Vlc3RleGFtcGxla2V5Zm9ydGVzdHMx me",
    "datastore_default": "local-lvm",
    "datastore_id": "local-lvm",
    "network_cidrs": {"compute": "10.0.10.0/24", "data": "10.0.30.0/24", "dns": "10.0.2.0/24"},
    "network_domains": {"data": "data.example.com"},
    "vlan_ids": {"data": 31},
    "nodes": {
        "pve1": {"role": "node-1", "logical_id": 1, "cluster_roles": ["storage"], "memory_budget_mb": 60000},
        "pve2": {"role": "node-2", "logical_id": 2},
        "pve3": {"role": "node-3", "commissioned": False},
    },
    "pools": {"infrastructure": {"comment": "x"}, "apps": {}},
    "node_storage": {"pve2": {"pools": {"tank": {"register": True}, "local-lvm": {"register": True}}}},
    "containers": {
        "my-container": CONTAINER,
        "dns-1": {
            "vm_id": 53,
            "hostname": "dns-1",
            "vlan": "dns",
            "node_name": "pve2",
            "network_interfaces": [{"firewall": False}],
            "memory_swap": 0,
        },
        "docker-1": {
            "vm_id": 605000,
            "hostname": "docker-1",
            "vlan": "data",
            "ip_config": {"ipv4_address": "10.0.30.7/24"},
            "tags": ["docker"],
            "pool_id": "apps",
            "mount_points": [
                {"volume": "local-lvm", "path": "/data", "size": 8},
                {"volume": "/srv", "path": "/srv"},
            ],
            "device_passthrough": [{"path": "/dev/net/tun", "mode": "0666"}],
            "ha_replication_target": "pve2",
        },
        "roaming": {"vm_id": 700, "hostname": "roaming", "vlan": "data", "dhcp": True},
    },
    "vms": {
        "vm-a": {
            "vm_id": 250,
            "vlan": "compute",
            "node_name": "pve1",
            "cpu_cores": 2,
            "boot_disk": {"size": 20},
            "additional_disks": [{"interface": "scsi1", "size": 8}],
            "tags": ["docker"],
        }
    },
    "openbao_cluster": {
        "enabled": True,
        "name_prefix": "openbao-",
        "vm_id_base": 800,
        "vlan": "compute",
        "placement": {"pve1": [11], "pve2": [{"vm_id": 812}]},
        "container_defaults": {"tags": ["openbao"], "pool_id": "apps"},
        "root_disk": {"size": 4},
        "root_disk_datastore_by_node": {"pve2": "tank"},
    },
    "node_services": {
        "agent": {
            "vlan": "data",
            "per_node": {
                "pve1": {"suffix": 1, "vm_id": 901, "host_octet": 91},
                "pve2": {"suffix": 2, "vm_id": 902},
                "pve3": {"suffix": 3, "vm_id": 903},
            },
            "container_defaults": {"memory_dedicated": 256},
        }
    },
}
# An id below 100 is none.
WHOLE["containers"]["dns-1"]["vm_id"] = 153


def text_of(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2) + "\n"


def edited(data: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a copy with values at paths like `containers__web__vm_id`; None removes one."""
    changed: dict[str, Any] = copy.deepcopy(dict(data))
    for path, value in changes.items():
        *above, last = path.split("__")
        parent = changed
        for key in above:
            parent = parent.setdefault(key, {})
        if value is None:
            parent.pop(last)
        else:
            parent[last] = value
    return changed


def checked(data: Mapping[str, Any], rules: Rules | None = None) -> ValidatedObject:
    return check(parse(text_of(data), "deployment.json"), rules)


def codes(data: Mapping[str, Any], rules: Rules | None = None) -> list[str]:
    """Return the codes of all errors of an object."""
    return [found.kind.code for found in checked(data, rules).found.errors]


def memory_store() -> EmbeddedStore:
    return EmbeddedStore(MemoryObjects(), "the object in memory")


def place_in(folder: Path, **settings: Any) -> ObjectLocation:
    """Return a place with its store in a folder, whatever the environment says."""
    return ObjectLocation(
        root=folder,
        base=folder / ".stackyard",
        settings=SettingsFile(**settings),
        store=folder / ".stackyard" / "deployment",
        environ={},
    )


def large(count: int) -> dict[str, Any]:
    """Return a valid object with many containers, a tenth of them virtual machines."""
    vlans = {f"net{number}": f"10.{number // 250}.{number % 250}.0/24" for number in range(count // 200 + 1)}
    containers: dict[str, Any] = {}
    vms: dict[str, Any] = {}
    for number in range(count):
        vlan = f"net{number // 200}"
        network = vlans[vlan].removesuffix("0/24")
        entry = {
            "vm_id": 100_000 + number,
            "vlan": vlan,
            "node_name": f"pve{number % 8}",
            "pool_id": f"pool{number % 16}",
            "tags": ["terraform", "load"],
            "ip_config": {"ipv4_address": f"{network}{number % 200 + 10}/24"},
            "cpu_cores": 1 + number % 4,
            "memory_dedicated": 1024,
        }
        if number % 10 == 9:
            vms[f"vm-{number}"] = {**entry, "boot_disk": {"size": 16}}
        else:
            containers[f"ct-{number}"] = {**entry, "hostname": f"ct-{number}", "root_disk": {"size": 8}}
    return {
        "proxmox_node": "pve0",
        "domain": "example.com",
        "network_cidrs": vlans,
        "nodes": {f"pve{number}": {"role": f"node-{number}"} for number in range(8)},
        "pools": {f"pool{number}": {} for number in range(16)},
        "containers": containers,
        "vms": vms,
    }
