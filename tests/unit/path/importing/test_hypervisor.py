"""A cluster in the words of `hypervisors/`: every kind has a list, and an entry says no more than it must."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.path.importing.hypervisor.entries import Words, list_private, list_secrets, to_entry, to_short
from stackyard.path.importing.hypervisor.lists import LISTS, listing_of
from stackyard.provider import registry
from stackyard.sources.hypervisor.models import resource_type
from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout

KNOWN = registry.load().resources
SECTIONS = [(section, kind) for section in (*CLUSTER, *NODE) for kind in section.kinds.values()]


def words(kind: str) -> Words:
    section = next(section for section, one in SECTIONS if one == kind)
    return Words(
        section=section, kind=kind, listing=listing_of(kind, None), schema=KNOWN[resource_type(kind)].schema
    )


def test_every_kind_of_a_file_has_a_list() -> None:
    kinds = {kind for _, kind in SECTIONS}
    assert kinds - {"firewall_rules"} == LISTS.keys()
    for section, kind in SECTIONS:
        listing = listing_of(kind, "pve1")
        assert bool(listing.path) or section.layout is Layout.ONE
        assert bool(section.identity) == (section.layout is Layout.LIST)


@pytest.mark.parametrize(
    ("kind", "state", "entry"),
    [
        ("role", {"role_id": "Ops", "privileges": ["VM.Audit"]}, ["VM.Audit"]),
        ("pool", {"pool_id": "lab", "comment": ""}, {}),
        (
            "network_linux_bridge",
            {"name": "vmbr1", "autostart": True, "vlan_aware": True, "vids": "2-4094", "ports": None},
            {"vlan_aware": True},
        ),
        (
            "network_linux_bridge",
            {"name": "vmbr1", "vlan_aware": False, "autostart": False},
            {"autostart": False},
        ),
        # A flag that is off by default is no reason to hide that this one is.
        (
            "backup_job",
            {"id": "n", "schedule": "02:00", "storage": "nas", "enabled": False, "mailto": None},
            {"schedule": "02:00", "storage": "nas", "enabled": False},
        ),
        (
            "storage_nfs",
            {"id": "nas", "server": "s", "export": "/e", "backups": {"keep_all": False, "keep_last": None}},
            {"type": "nfs", "export": "/e", "server": "s"},
        ),
        (
            "firewall_ipset",
            {"name": "a", "comment": "", "cidr": [{"name": "10.0.0.1", "comment": "", "nomatch": False}]},
            ["10.0.0.1"],
        ),
    ],
)
def test_an_entry_says_no_more_than_it_must(kind: str, state: dict[str, Any], entry: Any) -> None:
    said = words(kind)
    assert to_short(said.section, to_entry(said, state)) == entry


def test_secrets_are_named_and_never_written() -> None:
    share = {"id": "nas-1", "server": "s", "share": "x", "username": "u", "password": None}
    assert list_secrets(words("storage_cifs"), "nas-1", share) == {
        "password": "passwords.storages_nas_1_password"
    }
    assert "password" not in to_entry(words("storage_cifs"), {**share, "password": "told"})
    # A password that may be missing is only needed where it is known to be there.
    assert list_secrets(words("realm_ldap"), "house", {"bind_password": None}) == {}
    plugin = {"plugin": "cloud", "api": "cf", "data": {"CF_Token": "told"}}
    assert list_private(words("acme_dns_plugin"), plugin) == ["data"]
    assert to_entry(words("acme_dns_plugin"), plugin) == {"api": "cf"}
