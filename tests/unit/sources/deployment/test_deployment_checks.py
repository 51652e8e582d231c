"""Cross-checks: what no schema can say, all of it at once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.deployment import CONTAINER, SMALL, WHOLE, checked, codes, edited

from stackyard.sources.deployment.validate import Rules


def details(data: dict[str, Any]) -> str:
    return "\n".join(found.detail for found in checked(data).found.errors)


def test_a_vm_id_belongs_to_one_guest_whatever_its_kind() -> None:
    twin = {**CONTAINER, "hostname": "twin"}
    assert codes(edited(SMALL, containers__twin=twin)) == ["E-DEPLOYMENT-TWICE"]
    text = details(edited(WHOLE, **{"vms__vm-a__vm_id": 700}))
    assert "The vm_id 700 is claimed by container roaming and by VM vm-a." in text
    # The id of a generated guest counts as well.
    assert "generated container openbao-11" in details(edited(WHOLE, **{"vms__vm-a__vm_id": 811}))


@pytest.mark.parametrize(
    ("field", "value", "meant"),
    [
        ("node_name", "pve4", None),
        ("pool_id", "infrastructur", "infrastructure"),
        ("vlan", "computer", "compute"),
    ],
)
def test_node_pool_and_vlan_have_to_exist(field: str, value: str, meant: str | None) -> None:
    data = edited(WHOLE, **{f"containers__my-container__{field}": value})
    assert codes(data) == ["E-DEPLOYMENT-REFERENCE"]
    assert (f"Did you mean `{meant}`?" in details(data)) == (meant is not None)


def test_the_primary_node_has_to_exist() -> None:
    assert "E-DEPLOYMENT-REFERENCE" in codes(edited(SMALL, proxmox_node="elsewhere"))


def test_a_vlan_is_one_of_the_table_where_there_are_no_networks() -> None:
    assert codes(edited(SMALL, **{"containers__my-container__vlan": "siem"})) == []
    assert codes(edited(SMALL, **{"containers__my-container__vlan": "sime"})) == ["E-DEPLOYMENT-REFERENCE"]


def test_the_datastore_of_a_container_is_one_that_its_node_registers() -> None:
    data = edited(WHOLE, **{"containers__dns-1__root_disk": {"datastore_id": "rust"}})
    assert codes(data) == ["E-DEPLOYMENT-REFERENCE"]
    # A node that node_storage does not list is not judged.
    assert codes(edited(WHOLE, **{"containers__my-container__root_disk": {"datastore_id": "rust"}})) == []


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("10.0.99.7/24", "outside"),
        ("10.0.30.0/24", "no host"),
        ("10.0.30.255/24", "no host"),
        ("10.0.30.1/24", "gateway"),
        ("10.0.30.999/24", "no IPv4 address"),
        ("banana", "no IPv4 address"),
    ],
)
def test_a_pinned_address_lies_inside_its_network(address: str, what: str) -> None:
    data = edited(WHOLE, **{"containers__docker-1__ip_config__ipv4_address": address})
    assert "E-DEPLOYMENT-ADDRESS" in codes(data)
    assert what in details(data)


def test_an_address_belongs_to_one_guest_also_when_one_of_them_is_derived() -> None:
    data = edited(
        WHOLE,
        containers__rival={**CONTAINER, "vm_id": 7000, "hostname": "rival"}
        | {"ip_config": {"ipv4_address": "10.0.10.123/24"}},
    )
    assert codes(data) == ["E-DEPLOYMENT-TWICE"]
    assert "The address 10.0.10.123 is claimed by container my-container and by container rival." in details(
        data
    )


def test_a_static_guest_with_a_long_id_has_to_pin_its_address() -> None:
    data = edited(WHOLE, **{"containers__docker-1__ip_config": None})
    assert codes(data) == ["E-DEPLOYMENT-ADDRESS"]
    assert "605000 is no host number of 10.0.30.0/24" in details(data)


def test_dhcp_and_a_fixed_address_contradict_each_other() -> None:
    data = edited(WHOLE, containers__roaming__ip_config={"ipv4_address": "10.0.30.9/24"})
    assert codes(data) == ["E-DEPLOYMENT-ADDRESS"]


@pytest.mark.parametrize("cidr", ["10.0.10.1/24", "10.0.10.0/33", "300.1.1.0/24"])
def test_a_network_has_to_be_one(cidr: str) -> None:
    assert "E-DEPLOYMENT-ADDRESS" in codes(edited(WHOLE, network_cidrs__compute=cidr))


def test_a_guest_does_not_replicate_to_its_own_node() -> None:
    assert codes(edited(WHOLE, **{"containers__docker-1__ha_replication_target": "pve1"})) == [
        "E-DEPLOYMENT-PLACEMENT"
    ]
    assert codes(edited(WHOLE, **{"containers__docker-1__ha_replication_target": "pve9"})) == [
        "E-DEPLOYMENT-REFERENCE"
    ]


def test_a_node_that_is_not_commissioned_takes_no_guest() -> None:
    assert codes(edited(WHOLE, containers__roaming__node_name="pve3")) == ["E-DEPLOYMENT-PLACEMENT"]
    assert codes(edited(WHOLE, openbao_cluster__placement={"pve3": [11]})) == ["E-DEPLOYMENT-PLACEMENT"]


def test_one_node_at_most_claims_the_storage_role() -> None:
    assert codes(edited(WHOLE, nodes__pve2__cluster_roles=["storage"])) == ["E-DEPLOYMENT-PLACEMENT"]


def test_guests_fit_the_memory_budget_of_their_node() -> None:
    assert codes(edited(WHOLE, nodes__pve1__memory_budget_mb=1000)) == ["E-DEPLOYMENT-PLACEMENT"]


def test_a_generated_guest_never_takes_the_place_of_a_written_one() -> None:
    rival = {**CONTAINER, "vm_id": 199, "hostname": "other"}
    data = edited(WHOLE, **{"containers__openbao-11": rival})
    assert "E-DEPLOYMENT-TWICE" in codes(data)
    assert "The key openbao-11 is claimed by container openbao-11 and by generated" in details(data)


def test_a_service_on_a_node_that_does_not_exist_is_reported_and_does_not_vanish() -> None:
    data = edited(WHOLE, node_services__agent__per_node__pve9={"suffix": 9, "vm_id": 909})
    assert codes(data) == ["E-DEPLOYMENT-REFERENCE"]


def test_a_host_number_of_a_generator_is_one_of_a_host() -> None:
    data = edited(WHOLE, openbao_cluster__placement={"pve1": [{"vm_id": 2000}]})
    assert "E-DEPLOYMENT-ADDRESS" in codes(data)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("containers__my-container__cpu_core", "cpu_cores"),
        ("containers__my-container__memory", None),
        ("containers__my-container__Hostname", "hostname"),
        ("containers__my-container__vm-id", "vm_id"),
        ("containers__my-container__root_disk__datastore-id", "datastore_id"),
        ("containers__my-container__root_disk__sise", "size"),
        ("containers__my-container__root_disk__szie", "size"),
        ("containers__my-container__root_disk__siz", "size"),
        ("splunk_vm_nmae", "splunk_vm_name"),
        ("vms__vm-a__boot_disc", "boot_disk"),
        ("containerss", "containers"),
        ("network_cidr", "network_cidrs"),
        ("openbao_cluster__placment", "placement"),
        ("node_services__agent__container_defaults__memory_dedicate", "memory_dedicated"),
    ],
)
def test_a_misspelt_key_is_an_error_and_a_foreign_one_is_named(path: str, meant: str | None) -> None:
    data = edited(WHOLE, **{path: {"x": 1}})
    result = checked(data).found
    if meant is None:
        assert [found.kind.code for found in result.errors] == []
        assert [found.kind.code for found in result.warnings] == ["W-DEPLOYMENT-NOT-ACTED-ON"]
    else:
        assert "E-DEPLOYMENT-MISSPELT" in [found.kind.code for found in result.errors]
        assert f"Did you mean `{meant}`?" in "\n".join(found.detail for found in result.errors)


def test_what_stackyard_does_not_set_up_is_said() -> None:
    found = checked(edited(WHOLE, acme_accounts={"a": {}}, dns_plugins={})).found
    assert found.errors == ()
    assert {one.kind.code for one in found.warnings} == {"W-DEPLOYMENT-NOT-ACTED-ON"}


def test_the_keys_that_nothing_is_done_with_are_the_last_finding_and_one() -> None:
    data = edited(WHOLE, acme_accounts={}, mine=1, **{"containers__my-container__ha_affinity_group": "alone"})
    found = checked(data).found.warnings
    assert [one.kind.code for one in found] == ["W-DEPLOYMENT-NO-EFFECT", "W-DEPLOYMENT-NOT-ACTED-ON"]
    broken = checked(edited(data, **{"containers__my-container__vm_id": 5})).found
    assert [one.kind.code for one in broken.errors] == ["E-DEPLOYMENT-SCHEMA"]
    assert [one.kind.code for one in broken.warnings] == ["W-DEPLOYMENT-NOT-ACTED-ON"]


def together(**second: object) -> dict[str, Any]:
    """Return an object with two containers that are to be kept apart."""
    there = WHOLE["containers"]["my-container"]
    more = {**there, "vm_id": 199, "hostname": "other-container", "ha": True, "ha_affinity_group": "apart"}
    more = {key: value for key, value in {**more, **second}.items() if key != "ip_config"}
    changes = {"containers__my-container__ha": True, "containers__my-container__ha_affinity_group": "apart"}
    return edited(WHOLE, **changes, **{"containers__other-container": more})


def test_high_availability_of_two_that_are_kept_apart_is_taken_without_a_word() -> None:
    found = checked(together()).found
    assert found.errors == ()
    assert not [one for one in found.warnings if one.kind.code == "W-DEPLOYMENT-NO-EFFECT"]


def test_a_group_that_can_name_no_rule_is_an_error_at_its_place() -> None:
    odd = together(ha_affinity_group="1 of 2")
    odd["containers"]["my-container"]["ha_affinity_group"] = "1 of 2"
    (error,) = checked(odd).found.errors
    assert "the group `1 of 2` must be a letter" in error.detail


def test_a_group_that_keeps_nobody_apart_is_warned_about() -> None:
    said = [one.detail for one in checked(together(ha=False)).found.warnings]
    assert "my-container is alone in the group apart: no other guest to keep apart." in said
    assert "other-container is in the group apart without `ha`: no rule holds for it." in said


@pytest.mark.parametrize(
    "changes",
    [
        {"containers__my-container__user_account": {"password": "hunter2"}},
        {"tls": {"key": "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"}},
    ],
)
def test_a_secret_in_the_object_is_refused_and_not_shown(changes: dict[str, Any]) -> None:
    found = checked(edited(SMALL, **changes)).found
    assert [one.kind.code for one in found.errors] == ["E-DEPLOYMENT-SECRET"]
    assert "hunter2" not in "".join(one.detail for one in found)
    assert "abc" not in "".join(one.detail for one in found)


def test_an_object_of_another_environment_is_refused() -> None:
    rules = Rules(environment="homelab")
    assert codes(SMALL, rules) == []
    assert codes(edited(SMALL, environment="develop"), rules) == ["E-DEPLOYMENT-ENVIRONMENT"]


def test_all_offenders_are_listed_at_once_and_not_the_first() -> None:
    data = edited(
        WHOLE,
        **{
            "containers__my-container__pool_id": "nowhere",
            "containers__dns-1__vlan": "nowhere",
            "containers__roaming__node_name": "nowhere",
            "vms__vm-a__vm_id": 700,
            "nodes__pve1__memory_budget_mb": 1000,
        },
    )
    assert sorted(codes(data)) == [
        # The VM can no longer derive its address from its id.
        "E-DEPLOYMENT-ADDRESS",
        "E-DEPLOYMENT-PLACEMENT",
        "E-DEPLOYMENT-REFERENCE",
        "E-DEPLOYMENT-REFERENCE",
        "E-DEPLOYMENT-REFERENCE",
        "E-DEPLOYMENT-TWICE",
    ]


def test_a_guest_has_its_firewall_its_copies_and_no_backups_where_it_says_so() -> None:
    firewall = {
        "rules": [{"type": "in", "action": "ACCEPT", "macro": "ssh"}],
        "aliases": {"lan": "10.0.0.0/8"},
    }
    more = {"firewall": firewall, "replication": "pve2", "backup": False}
    data = edited(WHOLE, **{f"containers__my-container__{name}": value for name, value in more.items()})
    assert codes(data) == []
    desired = checked(data).desired
    assert desired is not None
    guest = next(one for one in desired.containers if one.key == "my-container")
    assert guest.firewall is not None
    assert [rule.macro for rule in guest.firewall.rules] == ["SSH"]
    assert [job.target for job in guest.replication] == ["pve2"]
    assert not any(mount.backup for mount in guest.mounts)


def test_everything_wrong_with_firewall_and_copies_is_found_at_once() -> None:
    rules = [
        {"type": "in", "action": "ACCEPT", "macro": "shh"},
        {"type": "in", "action": "ACCEPT", "dport": 22},
    ]
    values = {
        "containers__my-container__firewall": {"rules": rules},
        "containers__my-container__replication": {"target": "pve2", "schedule": "never"},
    }
    for wrong, count in ((values, 3), ({"containers__docker-1__replication": ["pve1", "pve9"]}, 2)):
        found = checked(edited(WHOLE, **wrong)).found.errors
        assert len({one.where.line for one in found if one.where is not None}) == len(found) == count
    no_card = {"firewall": {}, "network_interfaces": [{"firewall": False}]}
    data = edited(WHOLE, **{f"containers__my-container__{name}": value for name, value in no_card.items()})
    assert [one.kind.code for one in checked(data).found] == ["W-DEPLOYMENT-NO-EFFECT"]
