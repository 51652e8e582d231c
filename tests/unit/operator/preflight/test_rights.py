"""Which privileges a model needs, and where."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Desired
from stackyard.guard import Cluster
from stackyard.guard.facts import PERMISSIONS, VERSION, VNETS, Facts
from stackyard.guard.implied import ImpliedCalls
from stackyard.guard.privileges import ask_rights, find_lacking, missing
from stackyard.guard.rights import Grant, Purpose, Right, list_plan_rights, list_rights

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
    rights = list_rights(desired, zones=zones, purpose=purpose, version=version)
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


def facts(held: dict[str, dict[str, int]]) -> Facts:
    return Facts(
        cluster=Cluster(nodes=(), storages=(), guests=()), answers={PERMISSIONS: held}, caller="u@pve!t"
    )


def test_one_of_several_ways_is_enough_and_the_one_that_grants_the_least_is_named() -> None:
    alone, both = (Grant("/nodes/a", "X"),), (Grant("/", "Y"), Grant("/", "Z"))
    right = Right(ways=(alone, both), why="w")
    assert list(missing(right, facts({"/": {"Y": 0}}))) == list(alone)
    assert list(missing(right, facts({"/nodes/a": {"X": 0}}))) == []
    assert list(missing(right, facts({"/": {"Y": 0, "Z": 0}}))) == []


def test_a_path_without_an_entry_has_what_the_nearest_one_above_passes_on() -> None:
    found = facts({"/": {"A": 1}, "/vms": {"B": 1, "C": 0}, "/vms/100": {"D": 0}})
    assert set(found.get_privileges("/vms/100") or ()) == {"D"}
    assert set(found.get_privileges("/vms/101") or ()) == {"B"}
    assert set(found.get_privileges("/vms") or ()) == {"B"}
    assert set(found.get_privileges("/storage/local") or ()) == {"A"}


def test_a_thousand_guests_are_asked_about_once() -> None:
    vms = [{**VM, "key": f"v{n}", "name": f"v{n}", "vm_id": 100 + n} for n in range(1000)]
    desired = Desired.model_validate({"vms": vms})
    implied = ImpliedCalls(desired=desired, created=frozenset(vm["key"] for vm in vms))
    asked = list(ask_rights(implied, Cluster(nodes=(), storages=(), guests=())))
    # What they share is asked about by itself, too: rights can be taken away on a deeper path.
    shared = [dict(one.params)["path"] for one in asked if one.params]
    assert shared == ["/sdn/zones/localnetwork/vmbr0/7", "/storage/tank"]
    assert [one for one in asked if not one.params] == [PERMISSIONS, VERSION, VNETS]
    found = list(find_lacking(list_rights(desired, zones={}), facts({})))
    assert len(found) < 20
    assert "/vms/100, /vms/1000, /vms/1001 and 997 more" in found[0].detail + found[3].detail


def test_a_change_needs_what_its_attributes_need_and_no_more() -> None:
    desired = Desired.model_validate({"vms": [VM]})
    implied = ImpliedCalls(desired=desired, changed={"web": frozenset(("cpu", "description"))})
    found = {str(grant) for right in list_plan_rights(implied, zones={}) for grant in right.ways[0]}
    assert found == {"VM.Config.CPU on /vms/100", "VM.Config.Options on /vms/100"}


def test_the_token_that_lacks_a_privilege_is_named_with_the_command_that_grants_it() -> None:
    (found,) = find_lacking([Right(ways=((Grant("/vms/7", "VM.Clone"),),), why="web")], facts({}))
    assert found.detail == (
        "VM.Clone is missing on /vms/7; it is needed for web. The token u@pve!t does not have it: "
        "pveum acl modify /vms/7 --tokens 'u@pve!t' --roles PVEVMAdmin"
    )
