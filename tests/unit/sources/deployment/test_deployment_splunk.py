"""The machine that `splunk_*` at the top of the object stand for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.deployment import WHOLE, checked, codes, edited

from stackyard.desired import Vm

SPLUNK: dict[str, Any] = {
    "network_cidrs": {**WHOLE["network_cidrs"], "siem": "10.0.40.0/24"},
    "splunk_vm_id": 110,
    "splunk_vm_name": "splunk-aio",
    "splunk_vm_pool_id": "infrastructure",
    "splunk_node_name": "pve1",
    "splunk_cpu_type": "host",
    "splunk_migrate": False,
    "splunk_boot_disk_size": 25,
    "splunk_data_disk_size": 200,
    "template_id": 9100,
}


def machine(**changes: Any) -> Vm:
    result = checked(edited(WHOLE, **{**SPLUNK, **changes}))
    assert result.found.errors == (), result.found.errors
    assert result.desired is not None
    (found,) = [vm for vm in result.desired.vms if vm.key == "splunk"]
    return found


def test_the_machine_is_made_of_what_is_written_and_the_defaults_of_the_original() -> None:
    found = machine()
    assert (found.vm_id, found.name, found.node, found.pool) == (110, "splunk-aio", "pve1", "infrastructure")
    assert (found.cpu.cores, found.cpu.type, found.memory.dedicated_mib) == (8, "host", 12288)
    assert found.clone is not None
    assert found.clone.vm_id == 9100
    assert [(disk.interface, disk.size_gib) for disk in found.disks] == [("virtio0", 25), ("virtio1", 200)]
    assert {"splunk", "docker", "enterprise", "terraform", "homelab"} == set(found.tags)
    (card,) = found.nics
    assert (card.ipv4, card.gateway4, card.vlan, card.firewall) == ("10.0.40.110/24", "10.0.40.1", 40, True)


def test_there_is_none_without_its_id() -> None:
    data = edited(WHOLE, splunk_memory=8192)
    result = checked(data)
    assert result.desired is not None
    assert "splunk" not in {vm.key for vm in result.desired.vms}


def test_the_data_disk_may_be_left_out_and_tiers_are_made_where_they_are_wanted() -> None:
    assert [disk.interface for disk in machine(splunk_data_disk_size=0).disks] == ["virtio0"]
    tiers = machine(splunk_fast_disk_size=300).disks[2:]
    assert [(disk.interface, disk.datastore, disk.size_gib) for disk in tiers] == [
        ("virtio2", "fast-splunk", 300)
    ]
    storage = {
        "pve1": {
            "pools": {
                "nvme": {"register": False, "datasets": {"splunk": {"pvesm_id": "fast-splunk"}}},
                "bulk-splunk": {"register": True},
                "local-lvm": {"register": True},
            }
        }
    }
    offered = machine(node_storage=storage).disks[2:]
    assert [(disk.datastore, disk.size_gib) for disk in offered] == [
        ("fast-splunk", 1024),
        ("bulk-splunk", 2048),
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"splunk_vm_id": 99}, "E-DEPLOYMENT-SCHEMA"),
        ({"splunk_vm_id": 123}, "E-DEPLOYMENT-TWICE"),
        ({"splunk_node_name": "pve9"}, "E-DEPLOYMENT-REFERENCE"),
        ({"splunk_vm_pool_id": "nowhere"}, "E-DEPLOYMENT-REFERENCE"),
        ({"splunk_node_name": "pve3"}, "E-DEPLOYMENT-PLACEMENT"),
        ({"network_cidrs": WHOLE["network_cidrs"]}, "E-DEPLOYMENT-REFERENCE"),
    ],
)
def test_it_is_held_against_the_same_rules_as_every_guest(change: dict[str, Any], code: str) -> None:
    assert code in codes(edited(WHOLE, **{**SPLUNK, **change}))
