"""The Splunk machine: `splunk_*` at the top of the object represent one virtual machine.

It is cloned from `template_id`, is in the VLAN `siem`, and has up to four disks: the system, data, and two
tiers on the datastores `fast-splunk` and `bulk-splunk`. A tier is created where its size is written, or where
the object says that the node has its datastore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.deployment.scope import Scope

__all__ = ["SPLUNK_KEY", "TIERS", "splunk_entry"]

SPLUNK_KEY = "splunk"
_DEFAULT_TEMPLATE = 9201
_VLAN = "siem"
_TAGS = ("terraform", "splunk", "docker", "enterprise")


class _Tier:
    """A disk on a datastore of its own."""

    def __init__(self, name: str, interface: str, size: int) -> None:
        self.name = name
        self.interface = interface
        self.size = size

    @property
    def datastore(self) -> str:
        return f"{self.name}-splunk"


TIERS = (_Tier("fast", "virtio2", 1024), _Tier("bulk", "virtio3", 2048))


def splunk_entry(scope: Scope) -> Mapping[str, Any] | None:
    """Return the machine as if it were written among `vms`; None where the object has no `splunk_vm_id`."""
    said = {
        name.removeprefix("splunk_"): value
        for name, value in scope.data.items()
        if name.startswith("splunk_") and value not in (None, "")
    }
    if "vm_id" not in said:
        return None
    store = scope.word("datastore_id", "local-zfs")
    node = said.get("node_name") or scope.node
    disks = [_disk("virtio1", store, said.get("data_disk_size", 200)), *_tiers(scope, said, node)]
    return {
        "vm_id": said["vm_id"],
        "name": said.get("vm_name", "splunk"),
        "description": f"Splunk Enterprise ({scope.environment})",
        "node_name": node,
        "vlan": _VLAN,
        "pool_id": said.get("vm_pool_id"),
        "tags": list(_TAGS),
        "cpu_cores": said.get("cpu_cores", 8),
        "cpu_type": said.get("cpu_type", "host"),
        "memory_dedicated": said.get("memory", 12288),
        "migrate": said.get("migrate", False),
        "boot_disk": _disk("virtio0", store, said.get("boot_disk_size", 25)),
        "additional_disks": [disk for disk in disks if disk["size"]],
        "network_interfaces": [{"firewall": True}],
        "clone_template": {"template_id": scope.data.get("template_id") or _DEFAULT_TEMPLATE},
    }


def _tiers(scope: Scope, said: Mapping[str, Any], node: str) -> Iterator[dict[str, Any]]:
    offered = set(_datastores(scope.get_map("node_storage").get(node) or {}))
    for tier in TIERS:
        size = said.get(f"{tier.name}_disk_size")
        if size is None and tier.datastore in offered:
            size = tier.size
        if size:
            yield _disk(tier.interface, tier.datastore, size)


def _datastores(storage: Mapping[str, Any]) -> Iterator[str]:
    """Return the datastores that a node has, by what the object says of its pools and their datasets."""
    for name, pool in (storage.get("pools") or {}).items():
        if not isinstance(pool, dict):
            continue
        if pool.get("register"):
            yield name
        for dataset in (pool.get("datasets") or {}).values():
            if isinstance(dataset, dict) and dataset.get("pvesm_id"):
                yield str(dataset["pvesm_id"])


def _disk(interface: str, datastore: str, size: int) -> dict[str, Any]:
    return {"interface": interface, "datastore_id": datastore, "size": size}
