"""Objects of clusters and nodes: what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Bridge, ClusterObject, Desired, ObjectKey, Pool, SimpleZone, Vlan, Vnet
from stackyard.render.networks import FINALIZER
from stackyard.render.objects import object_resources

SITE = Desired(
    pools=(Pool(name="apps"),),
    zones=(SimpleZone(name="lab", type="simple"),),
    vnets=(Vnet(name="lan", zone="lab"),),
    bridges=(Bridge(name="vmbr1", node="pve1"),),
    vlans=(Vlan(name="eno1.20", node="pve1"),),
)
ON_PVE1 = {"node_name": "pve1"}


def _waits_for(kind: str, attributes: dict[str, Any]) -> list[str]:
    one = ClusterObject(key=ObjectKey(type=kind, name="a"), attributes=attributes)
    resource: Any = object_resources(SITE.model_copy(update={"objects": (one,)}))[kind]["a"]
    return [name for name in resource.get("depends_on", []) if name != FINALIZER]


@pytest.mark.parametrize(
    ("kind", "attributes", "made_first"),
    [
        ("proxmox_sdn_vnet", {"zone": "lab"}, ["proxmox_sdn_zone_simple.lab"]),
        ("proxmox_sdn_subnet", {"vnet": "lan", "cidr": "10.0.0.0/24"}, ["proxmox_sdn_vnet.lan"]),
        ("proxmox_backup_job", {"pool": "apps"}, ["proxmox_virtual_environment_pool.apps"]),
        ("proxmox_acl", {"path": "/pool/apps"}, ["proxmox_virtual_environment_pool.apps"]),
        ("proxmox_acl", {"path": "/sdn/zones/lab"}, ["proxmox_sdn_zone_simple.lab"]),
        (
            "proxmox_acl",
            {"path": "/sdn/zones/lab/lan"},
            ["proxmox_sdn_vnet.lan", "proxmox_sdn_zone_simple.lab"],
        ),
        (
            "proxmox_network_linux_vlan",
            {**ON_PVE1, "name": "vmbr1.5"},
            ["proxmox_network_linux_bridge.pve1_vmbr1"],
        ),
        (
            "proxmox_network_linux_bridge",
            {**ON_PVE1, "name": "vmbr2", "ports": ["eno1.20"]},
            ["proxmox_network_linux_vlan.pve1_eno1-20"],
        ),
        (
            "proxmox_sdn_zone_vlan",
            {"bridge": "vmbr1", "nodes": ["pve1", "pve2"]},
            ["proxmox_network_linux_bridge.pve1_vmbr1"],
        ),
    ],
)
def test_an_object_of_a_file_waits_for_what_site_yaml_makes_and_it_names(
    kind: str, attributes: dict[str, Any], made_first: list[str]
) -> None:
    assert _waits_for(kind, attributes) == made_first


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("proxmox_acl", {"path": "/pool/other"}),
        ("proxmox_acl", {"path": "/"}),
        ("proxmox_network_linux_vlan", {"node_name": "pve2", "name": "vmbr1.5"}),
        ("proxmox_sdn_vnet", {"zone": "lan"}),
    ],
)
def test_an_object_waits_for_nothing_that_it_does_not_name(kind: str, attributes: dict[str, Any]) -> None:
    assert _waits_for(kind, attributes) == []
