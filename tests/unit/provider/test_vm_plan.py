"""Plans of a VM: what is refused, what is not known yet, and what is no change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab
from stackyard.provider.durations import duration_s
from stackyard.provider.resources.vm.disks import render_changed
from stackyard.provider.values import UNKNOWN

VM = "proxmox_virtual_environment_vm"

Scenario = Callable[[Bench], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def whole() -> None:
        async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
            await scenario(it)

    asyncio.run(whole())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "number": ({"vm_id": 7}, "`vm_id` must be between 100"),
    "bios": ({"bios": "x"}, "`bios` must be one of"),
    "two-drives": (
        {"disk": [{"interface": "ide3"}], "cdrom": [{}]},
        "More than one drive is attached to ide3",
    ),
    "two-disks": ({"disk": [{"interface": "scsi0"}, {"interface": "scsi0"}]}, "attached to scsi0"),
    "interface": ({"disk": [{"interface": "nvme0"}]}, "`disk.interface` must be ide, sata, scsi or virtio"),
    "queues": ({"disk": [{"interface": "ide0", "queues": 4}]}, "SCSI disks only"),
    "one-queue": ({"disk": [{"interface": "scsi0", "queues": 1}]}, "must be 0, or at least 2"),
    "both-images": (
        {"disk": [{"interface": "scsi0", "file_id": "local:iso/a.img", "import_from": "local:import/b.raw"}]},
        "either `file_id` or `import_from`",
    ),
    "pci": ({"hostpci": [{"device": "hostpci0"}]}, "needs `id` or `mapping`"),
    "two-pci": (
        {"hostpci": [{"device": "hostpci0", "id": "1"}, {"device": "hostpci0", "id": "2"}]},
        "more than one `hostpci`",
    ),
    "usb": ({"usb": [{}]}, "needs `host` or `mapping`"),
    "timeout": ({"agent": [{"timeout": "soon"}]}, "must be a duration"),
    "hotplug": ({"hotplug": "disk,disk"}, "`hotplug` must be"),
    "name": ({"name": "under_score"}, "valid host name"),
    "memory": ({"memory": [{"dedicated": 1}]}, "between 64 and"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_by_name(case: str) -> None:
    config, text = WRONG[case]

    async def scenario(it: Bench) -> None:
        with pytest.raises(Failed, match=text):
            it.plan(VM, node_name="pve1", **config)

    run(scenario)


def test_what_is_not_known_yet_can_be_planned() -> None:
    async def scenario(it: Bench) -> None:
        planned = it.plan(
            VM,
            node_name=UNKNOWN,
            name=UNKNOWN,
            vm_id=UNKNOWN,
            tags=UNKNOWN,
            disk=[{"interface": UNKNOWN, "size": UNKNOWN, "import_from": UNKNOWN}],
            network_device=[{"bridge": UNKNOWN}],
            clone=[{"vm_id": UNKNOWN}],
            initialization=[{"user_data_file_id": UNKNOWN}],
        ).state
        assert planned is not None
        assert planned["network_device"][0]["bridge"] is UNKNOWN
        assert planned["network_device"][0]["model"] == "virtio"
        assert it.plan(VM, node_name="pve1", network_device=UNKNOWN, disk=UNKNOWN).state is not None

    run(scenario)


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tags": ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}),
    "disks": (
        {"disk": [{"interface": "scsi0", "size": 1}, {"interface": "scsi1", "size": 2}]},
        {"disk": [{"interface": "scsi1", "size": 2}, {"interface": "scsi0", "size": 1}]},
    ),
    "durations": ({"agent": [{"timeout": "15m"}]}, {"agent": [{"timeout": "900s"}]}),
    "hotplug": ({"hotplug": "disk,network"}, {"hotplug": "network,disk"}),
    "password": (
        {"initialization": [{"user_account": [{"username": "a", "password": "one"}]}]},
        {"initialization": [{"user_account": [{"username": "a", "password": "two"}]}]},
    ),
    "template": ({"template": True, "started": False}, {"template": True, "started": True}),
    "cards-not-named": ({"network_device": [{"bridge": "vmbr0"}]}, {}),
}


@pytest.mark.parametrize("case", SAME)
def test_another_way_to_say_the_same_is_no_change(case: str) -> None:
    before, after = SAME[case]

    async def scenario(it: Bench) -> None:
        base = {"node_name": "pve1", "started": False}
        await it.apply(VM, **base | before)
        assert await it.is_settled(VM, **base | after)

    run(scenario)


def test_what_an_imported_vm_was_made_from_is_left_alone_and_the_rest_is_compared() -> None:
    made = {"node_name": "pve1", "started": False, "vm_id": 100}
    said: dict[str, Any] = {
        "migrate": True,
        "stop_on_destroy": True,
        "agent": [{"enabled": True, "timeout": "60s"}],
    }
    disk = {"interface": "scsi0", "size": 1}

    async def scenario(it: Bench) -> None:
        await it.apply(VM, **made, **said, disk=[disk])
        await it.adopt(VM, "pve1/100", **made, **said, disk=[disk])
        for beginning in ("local:iso/debian.img", UNKNOWN):
            for name in ("file_id", "import_from"):
                planned = it.plan(VM, **made, **said, disk=[{**disk, name: beginning}])
                assert (planned.replace, planned.state) == ([], it.states[VM])
        planned = it.plan(VM, **made, **said, disk=[disk], clone=[{"vm_id": 900}])
        assert (planned.replace, planned.state) == ([], it.states[VM])
        # A disk that is not there yet is made from its image.
        second = {"interface": "scsi1", "size": 1, "import_from": "local:import/a.qcow2"}
        planned = it.plan(VM, **made, **said, disk=[disk, second])
        assert planned.state is not None
        assert planned.state["disk"][1]["import_from"] == "local:import/a.qcow2"
        other = it.plan(VM, **made, **{**said, "agent": [{"enabled": False}]}, disk=[disk]).state
        assert other is not None
        assert other["agent"][0]["enabled"] is False

    run(scenario)


def test_a_new_card_makes_the_addresses_unknown() -> None:
    async def scenario(it: Bench) -> None:
        base = {"node_name": "pve1", "started": False}
        await it.apply(VM, **base, network_device=[{"bridge": "vmbr0"}])
        cards = [{"bridge": "vmbr0"}, {"bridge": "vmbr0"}]
        planned = it.plan(VM, **base, network_device=cards).state
        assert planned is not None
        assert planned["network_device"][0]["mac_address"] == it.states[VM]["mac_addresses"][0]
        assert planned["network_device"][1]["mac_address"] is UNKNOWN
        assert planned["ipv4_addresses"] is UNKNOWN

    run(scenario)


@pytest.mark.parametrize(
    ("text", "expected"), [("15m", 900.0), ("1h30m", 5400.0), ("90s", 90.0), ("1.5m", 90.0), ("500ms", 0.5)]
)
def test_durations_are_read(text: str, expected: float) -> None:
    assert duration_s(text) == expected


@pytest.mark.parametrize("text", ["15", "m", "1x", "soon", "1m5"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|could not convert"):
        duration_s(text)


def test_options_of_a_disk_change_only_what_they_mean() -> None:
    disk = {"interface": "scsi0", "backup": True, "replicate": True, "discard": "ignore", "cache": "none"}
    current = "local-lvm:vm-1-disk-0,size=2G,mbps_rd=5,wwn=0x1"
    assert render_changed("local-lvm:vm-1-disk-0,size=2G", disk) is None
    changed = render_changed(current, {**disk, "discard": "on"})
    assert changed is not None
    assert "discard=on" in changed
    assert "wwn=0x1" in changed
    assert "mbps_rd" not in changed
    assert "size" not in changed
