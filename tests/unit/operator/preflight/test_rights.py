"""Which privileges a model needs, and where."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Desired
from stackyard.operator.preflight.granting import _folded, _missing
from stackyard.operator.preflight.rights import Grant, Right, needed
from stackyard.operator.preflight.subject import Purpose

VM: dict[str, Any] = {
    "key": "web",
    "name": "web",
    "node": "pve1",
    "vm_id": 100,
    "disks": [{"interface": "virtio0", "datastore": "tank"}],
    "nics": [{"bridge": "vmbr0", "vlan": 7}],
    "agent": {"enabled": True},
}


def grants(
    document: dict[str, Any], *, purpose: Purpose = Purpose.CREATE, version: str = "9.0", **zones: str
) -> set[str]:
    """Return the grants of the first way of each right."""
    desired = Desired.model_validate(document)
    rights = needed(desired, zones=zones, purpose=purpose, version=version)
    return {str(grant) for right in rights for grant in right.ways[0]}


def test_a_plain_machine_needs_its_own_options_its_datastore_and_its_bridge() -> None:
    found = grants({"vms": [VM]})
    assert {"VM.Allocate on /vms/100", "VM.Config.Network on /vms/100"} <= found
    assert "Datastore.AllocateSpace on /storage/tank" in found
    assert "SDN.Use on /sdn/zones/localnetwork/vmbr0/7" in found
    assert not any("Cloudinit" in grant or "Sys." in grant for grant in found)


def test_a_bridge_of_the_sdn_is_asked_for_in_its_zone() -> None:
    assert "SDN.Use on /sdn/zones/lab/vmbr0/7" in grants({"vms": [VM]}, vmbr0="lab")


def test_before_version_9_the_agent_is_asked_with_another_privilege() -> None:
    assert "VM.Monitor on /vms/100" in grants({"vms": [VM]}, version="8.4.1")
    assert "VM.GuestAgent.Audit on /vms/100" in grants({"vms": [VM]}, version="")


def test_to_destroy_needs_less_than_to_make() -> None:
    assert grants({"vms": [VM]}, purpose=Purpose.DESTROY) == {
        "VM.Allocate on /vms/100",
        "VM.Audit on /vms/100",
        "VM.PowerMgmt on /vms/100",
    }


@pytest.mark.parametrize(
    ("more", "grant"),
    [
        ({"clone": {"vm_id": 900}}, "VM.Clone on /vms/900"),
        ({"startup": {"order": 3}}, "Sys.Modify on /"),
        (
            {"cloud_init": {"datastore": "local", "users": [{"name": "ops"}]}},
            "VM.Config.Cloudinit on /vms/100",
        ),
        ({"cdrom": {}}, "VM.Config.CDROM on /vms/100"),
        ({"vm_id": None}, "VM.Allocate on /vms"),
        ({"pci_devices": [{"device": "hostpci0", "mapping": "gpu"}]}, "Mapping.Use on /mapping/pci/gpu"),
    ],
)
def test_what_a_machine_has_beside_that_is_asked_for_too(more: dict[str, Any], grant: str) -> None:
    assert grant in grants({"vms": [{**VM, **more}]})


def test_files_networks_and_pools_are_asked_for_where_they_are_made() -> None:
    found = grants(
        {
            "files": [
                {
                    "kind": "download",
                    "key": "i",
                    "node": "pve1",
                    "content": "iso",
                    "url": "https://x.example/a.iso",
                },
                {"kind": "snippet", "key": "s", "node": "pve1", "file_name": "s.yaml", "content": "x"},
            ],
            "bridges": [{"node": "pve1", "name": "vmbr9"}],
            "zones": [{"type": "simple", "name": "z"}],
            "vnets": [{"name": "v", "zone": "z"}],
            "pools": [{"name": "p"}],
        }
    )
    assert found == {
        "Datastore.Audit on /storage/local",
        "Datastore.AllocateTemplate on /storage/local",
        "Datastore.Allocate on /storage/local",
        "Sys.AccessNetwork on /nodes/pve1",
        "Sys.Modify on /nodes/pve1",
        "SDN.Allocate on /sdn",
        "SDN.Allocate on /sdn/zones",
        "SDN.Allocate on /sdn/zones/z",
        "Pool.Allocate on /pool/p",
    }


def test_one_of_several_ways_is_enough_and_the_one_that_grants_the_least_is_named() -> None:
    alone, both = (Grant("/nodes/a", "X"),), (Grant("/", "Y"), Grant("/", "Z"))
    right = Right(ways=(alone, both), why="w")
    assert list(_missing(right, {"/nodes/a": frozenset(), "/": frozenset({"Y"})})) == list(alone)
    assert list(_missing(right, {"/nodes/a": frozenset("X"), "/": frozenset()})) == []
    assert list(_missing(right, {"/nodes/a": frozenset(), "/": frozenset({"Y", "Z"})})) == []


def test_a_thousand_guests_are_asked_about_once() -> None:
    vms = [{**VM, "key": f"v{n}", "name": f"v{n}", "vm_id": 100 + n} for n in range(1000)]
    rights = _folded(needed(Desired.model_validate({"vms": vms}), zones={}))
    paths = {grant.path for right in rights for way in right.ways for grant in way}
    assert paths == {"/vms", "/storage/tank", "/sdn/zones/localnetwork/vmbr0/7"}
    assert len(rights) < 20
