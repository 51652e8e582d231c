"""Entries of a file as objects: names that stay, secrets by name, and words for all of them."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.engine.changes import Action, Change
from stackyard.guard.subjects import describe
from stackyard.render import render
from stackyard.render.objects import address_of_object, object_resources
from stackyard.sources.hypervisor.build import build_desired, list_entries
from stackyard.sources.hypervisor.models import cluster_model, node_model
from stackyard.sources.hypervisor.sections import CLUSTER, NODE
from stackyard.sources.hypervisor.words import SECTION_WORDS

ENTRIES: list[dict[str, Any]] = [
    {"path": "/", "group_id": "admins", "role_id": "PVEAdmin"},
    {"path": "/vms/100", "user_id": "anna@pve", "role_id": "PVEVMUser", "propagate": False},
]


def test_an_entry_of_a_list_keeps_its_name_wherever_it_is_in_the_list() -> None:
    def names(entries: list[dict[str, Any]]) -> list[str]:
        return [
            one.key.name for one in build_desired(cluster_model().model_validate({"acl": entries})).objects
        ]

    assert names(ENTRIES) == ["admins/PVEAdmin/", "anna@pve/PVEVMUser/vms/100"]
    assert names(ENTRIES[::-1]) == names(ENTRIES)[::-1]
    # What does not tell entries apart can change.
    assert names([{**ENTRIES[0], "propagate": False}, ENTRIES[1]]) == names(ENTRIES)


def test_a_subnet_has_the_address_that_a_network_of_a_site_gives_it() -> None:
    model = cluster_model().model_validate({"sdn": {"subnets": [{"vnet": "lan", "cidr": "10.0.0.0/24"}]}})
    addresses = [address_of_object(one.key) for one in build_desired(model).objects]
    assert addresses == ["proxmox_sdn_subnet.lan_10-0-0-0-24"]


def test_a_section_that_a_file_may_have_has_words() -> None:
    assert {section.name for section in (*CLUSTER, *NODE)} == set(SECTION_WORDS)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("proxmox_storage_nfs", {"id": "nas"}, "storage nas"),
        ("proxmox_virtual_environment_user", {"user_id": "anna@pve"}, "user anna@pve"),
        ("proxmox_acl", ENTRIES[0], "ACL entry PVEAdmin for admins on /"),
        ("proxmox_virtual_environment_pool", {"pool_id": "apps"}, "pool apps"),
        ("proxmox_network_linux_vlan", {"name": "vmbr0.20", "node_name": "pve1"}, "VLAN vmbr0.20"),
        ("proxmox_sdn_subnet", {"cidr": "10.0.0.0/24", "vnet": "lan"}, "SDN subnet 10.0.0.0/24"),
        ("proxmox_virtual_environment_dns", {"node_name": "pve1"}, "DNS settings pve1"),
        ("proxmox_cluster_options", {"keyboard": "de"}, "cluster options"),
        ("proxmox_apt_repository", {"file_path": "/etc/a.list", "index": 0}, "APT repository /etc/a.list 0"),
    ],
)
def test_a_plan_names_an_object_in_words(kind: str, values: dict[str, Any], words: str) -> None:
    change = Change(address=f"{kind}.a", kind=kind, name="a", action=Action.CREATE, after=values)
    assert describe(change) == words


def test_a_secret_in_a_mapping_is_a_variable_and_never_in_the_code() -> None:
    plugin = {"api": "cf", "data": {"CF_Token": {"secret": "passwords.cf"}, "CF_Zone": "abc"}}
    desired = build_desired(cluster_model().model_validate({"acme": {"plugins": {"cf": plugin}}}))
    resource = object_resources(desired)["proxmox_acme_dns_plugin"]["cf"]
    assert resource["data"]["CF_Zone"] == "abc"
    assert resource["data"]["CF_Token"].startswith("${var.")
    assert [one.secret.secret for one in render(desired).variables] == ["passwords.cf"]


def test_short_forms_say_the_same_as_long_ones() -> None:
    short = {"node": "a", "time": "UTC", "standard_repositories": ["no-subscription"]}
    long = {
        "node": "a",
        "time": {"time_zone": "UTC"},
        "standard_repositories": [{"handle": "no-subscription"}],
    }
    models = [node_model().model_validate(said) for said in (short, long)]
    assert list(list_entries(models[0])) == list(list_entries(models[1]))
