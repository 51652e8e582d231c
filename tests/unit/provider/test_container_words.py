"""Containers between blocks and the texts of Proxmox: what is written comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.provider.resources.container import RESOURCE
from stackyard.provider.resources.container.describe import describe
from stackyard.provider.resources.container.networks import expects_address
from stackyard.provider.resources.container.properties import properties, render_creation
from stackyard.provider.turns import Turns
from stackyard.provider.values import UNKNOWN

WORDS = st.text(alphabet="abcxyz/:-.", min_size=1, max_size=8)
IDS = st.integers(min_value=0, max_value=70000)

DISK = st.fixed_dictionaries(
    {
        "acl": st.booleans(),
        "backup": st.booleans(),
        "mount_options": st.lists(WORDS, max_size=3),
        "path": WORDS,
        "quota": st.booleans(),
        "read_only": st.booleans(),
        "replicate": st.booleans(),
        "shared": st.booleans(),
        "size": st.sampled_from(["1G", "512M"]),
        "volume": WORDS.map(lambda word: f"store:{word}"),
    }
)
NIC = st.fixed_dictionaries(
    {
        "bridge": WORDS,
        "enabled": st.just(True),
        "firewall": st.booleans(),
        "host_managed": st.booleans(),
        "mac_address": st.just("BC:24:11:00:00:01"),
        "mtu": IDS,
        "name": WORDS,
        "rate_limit": st.sampled_from([0, 1, 2.5]),
        "vlan_id": IDS,
    }
)
DEVICE = st.fixed_dictionaries(
    {"deny_write": st.booleans(), "gid": IDS, "mode": st.just("0640"), "path": WORDS, "uid": IDS}
)
CPU = st.fixed_dictionaries(
    {"architecture": st.just("arm64"), "cores": st.just(3), "limit": st.sampled_from([0, 1.5]), "units": IDS}
)
STARTUP = st.fixed_dictionaries({name: st.integers(0, 9) for name in ("order", "up_delay", "down_delay")})
STATE = st.fixed_dictionaries(
    {
        "cpu": st.lists(CPU, min_size=1, max_size=1),
        "device_passthrough": st.lists(DEVICE, max_size=2),
        "environment_variables": st.dictionaries(st.text("ABC", min_size=1), st.text("x=y,z")),
        "mount_point": st.lists(DISK, max_size=2),
        "network_interface": st.lists(NIC, max_size=2),
        "protection": st.booleans(),
        "startup": st.lists(STARTUP, max_size=1),
        "start_on_boot": st.booleans(),
        "tags": st.lists(st.sampled_from("abc"), unique=True).map(sorted),
    }
)


@given(STATE)
def test_what_is_written_is_read_back(state: dict[str, Any]) -> None:
    described = describe(properties(state), state)
    for name, value in state.items():
        found = described[name]
        if name == "mount_point":
            found = [{key: one[key] for key in one if key != "path_in_datastore"} for one in found]
        assert found == value, name


def test_more_than_ten_of_a_kind_keep_their_order() -> None:
    state = {"device_passthrough": [{"path": f"/dev/{i}"} for i in range(12)]}
    found = describe(properties(state), state)["device_passthrough"]
    assert [one["path"] for one in found] == [f"/dev/{i}" for i in range(12)]


def test_nothing_unknown_is_sent() -> None:
    sent = properties(
        {
            "description": UNKNOWN,
            "network_interface": [{"name": "eth0", "mac_address": UNKNOWN}],
            "tags": None,
        }
    )
    assert sent["net0"] == "name=eth0"
    assert "description" not in sent


def test_a_block_that_is_left_out_stands_for_its_defaults_but_not_in_a_clone() -> None:
    assert {"cores", "memory", "swap", "tty"} <= properties({}).keys()
    assert not {"cores", "memory", "swap", "tty"} & properties({"clone": [{"vm_id": 100}]}).keys()


def test_a_volume_is_made_once_and_then_named() -> None:
    new = {"mount_point": [{"volume": "local-lvm", "size": "2G", "path": "/a"}]}
    there = {"mount_point": [{"volume": "local-lvm:vm-1-disk-1", "size": "2G", "path": "/a"}]}
    assert properties(new)["mp0"] == "volume=local-lvm:2,mp=/a"
    assert properties(there)["mp0"] == "volume=local-lvm:vm-1-disk-1,mp=/a,size=2G"


def test_keys_and_password_go_only_to_the_call_that_makes_it() -> None:
    account = {"keys": ["one", "two"], "password": "hidden"}
    values = {"initialization": [{"user_account": [account]}]}
    assert render_creation(values)["ssh-public-keys"] == "one\ntwo"
    assert render_creation(values)["password"] == "hidden"
    assert "hidden" not in str(properties(values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("name=a,ip=dhcp", True), ("name=a,ip6=auto", True), ("name=a,ip=manual", False), ("name=a", False)],
)
def test_an_address_is_expected_where_one_is_set(text: str, expected: bool) -> None:
    assert expects_address({"net0": text}) is expected


def test_an_import_names_node_and_number() -> None:
    assert RESOURCE.identify("pve1/200") == {"id": "200", "vm_id": 200, "node_name": "pve1"}


def test_clones_to_one_storage_go_one_after_the_other() -> None:
    async def scenario() -> tuple[int, int]:
        queue, at_once, most = Turns(), 0, {"a": 0, "b": 0}
        everywhere = 0

        async def clone(storage: str) -> None:
            nonlocal at_once, everywhere
            async with queue.turn("pve1", storage):
                running[storage] += 1
                most[storage] = max(most[storage], running[storage])
                everywhere = max(everywhere, sum(running.values()))
                await asyncio.sleep(0)
                running[storage] -= 1

        running = {"a": 0, "b": 0}
        await asyncio.gather(*(clone(storage) for storage in "aaabbb"))
        return max(most.values()), everywhere

    assert asyncio.run(scenario()) == (1, 2)
