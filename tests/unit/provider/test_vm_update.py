"""Changes of a VM in place: what Proxmox has afterwards, and that nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.lab import ROOMY
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab

VM = "proxmox_virtual_environment_vm"
BASE: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 200,
    "name": "web",
    "disk": [{"interface": "scsi0", "size": 2}, {"interface": "scsi1", "size": 1}],
    "network_device": [{"bridge": "vmbr0"}, {"bridge": "vmbr0"}],
    "boot_order": ["scsi0"],
}
INIT: dict[str, Any] = {
    "initialization": [
        {"user_account": [{"username": "ops", "password": "x"}], "dns": [{"servers": ["10.0.0.1"]}]}
    ]
}

Scenario = Callable[[Bench, lab.Running], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def whole() -> None:
        async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, bench(running) as it:
            await scenario(it, running)

    asyncio.run(whole())


def config_of(running: lab.Running, vm_id: int = 200) -> dict[str, Any]:
    guest = running.world.guests.get(vm_id)
    assert guest is not None
    found: dict[str, Any] = dict(guest["config"])
    return found


def calls(running: lab.Running, after: int) -> list[str]:
    return [f"{one.method} {one.path}" for one in running.world.journal.entries(after) if one.method != "GET"]


def starts(running: lab.Running, after: int) -> int:
    return sum("status/start" in one or "status/reboot" in one for one in calls(running, after))


# The change, what the configuration on Proxmox has then (None: nothing), and whether the VM was restarted.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]] = {
    "name": ({}, {"name": "api"}, {"name": "api"}, False),
    "no-name": ({}, {"name": None}, {"name": None}, False),
    "description": ({}, {"description": "new"}, {"description": "new"}, False),
    "no-description": ({"description": "old"}, {}, {"description": None}, False),
    "tags": ({"tags": ["a"]}, {"tags": ["b", "a"]}, {"tags": "a;b"}, False),
    "no-tags": ({"tags": ["a"]}, {}, {"tags": None}, False),
    "on-boot": ({}, {"on_boot": False}, {"onboot": 0}, False),
    "protection": ({}, {"protection": True}, {"protection": 1}, False),
    "cores": ({}, {"cpu": [{"cores": 3}]}, {"cores": 3}, True),
    "no-cpu": ({"cpu": [{"cores": 3, "limit": 2}]}, {}, {"cores": 1, "cpulimit": None}, True),
    "memory": ({}, {"memory": [{"dedicated": 1024}]}, {"memory": "1024"}, True),
    "agent": ({}, {"agent": [{"enabled": True, "timeout": "1s"}]}, {}, True),
    "agent-timeout-only": (
        {"agent": [{"enabled": True, "timeout": "1s"}]},
        {"agent": [{"enabled": True, "timeout": "2s"}]},
        {},
        False,
    ),
    "machine": ({}, {"machine": "q35"}, {"machine": "q35"}, True),
    "serial": ({}, {"serial_device": [{}]}, {"serial0": "socket"}, True),
    "no-serial": ({"serial_device": [{}, {}]}, {"serial_device": [{}]}, {"serial1": None}, True),
    "vga": ({}, {"vga": [{"type": "serial0"}]}, {}, True),
    "watchdog": ({}, {"watchdog": [{"enabled": True}]}, {}, True),
    "no-watchdog": ({"watchdog": [{"enabled": True}]}, {}, {"watchdog": None}, True),
    "startup": ({}, {"startup": [{"order": 2}]}, {"startup": "order=2"}, False),
    "no-startup": ({"startup": [{"order": 2}]}, {}, {"startup": None}, False),
    "boot-order": ({}, {"boot_order": ["net0", "scsi0"]}, {"boot": "order=net0;scsi0"}, True),
    "card": ({}, {"network_device": [{"bridge": "vmbr0", "vlan_id": 5}]}, {"net1": None}, False),
    "no-cards": ({}, {"network_device": []}, {"net0": None, "net1": None}, False),
    "disk-grown": (
        {},
        {"disk": [{"interface": "scsi0", "size": 5}, {"interface": "scsi1", "size": 1}]},
        {},
        False,
    ),
    "disk-added": (
        {},
        {"disk": [*BASE["disk"], {"interface": "scsi5", "size": 3, "datastore_id": "local"}]},
        {},
        False,
    ),
    "disk-removed": ({}, {"disk": [{"interface": "scsi0", "size": 2}]}, {"scsi1": None}, False),
    "disk-moved": (
        {},
        {"disk": [{"interface": "scsi0", "size": 2, "datastore_id": "local"}, BASE["disk"][1]]},
        {},
        False,
    ),
    "disk-options": (
        {},
        {"disk": [{"interface": "scsi0", "size": 4, "discard": "on", "ssd": True}, BASE["disk"][1]]},
        {},
        True,
    ),
    "cd": ({}, {"cdrom": [{"file_id": "none"}]}, {"ide3": "none,media=cdrom"}, True),
    "cd-elsewhere": (
        {"cdrom": [{"file_id": "none"}]},
        {"cdrom": [{"file_id": "none", "interface": "ide1"}]},
        {"ide3": None},
        True,
    ),
    "cloud-init": ({}, INIT, {"ciuser": "ops"}, True),
    "cloud-init-changed": (
        INIT,
        {"initialization": [{"user_account": [{"username": "dev"}]}]},
        {"ciuser": "dev", "nameserver": None},
        True,
    ),
    "cloud-init-moved": (
        INIT,
        {"initialization": [{**INIT["initialization"][0], "interface": "scsi7"}]},
        {"ide2": None},
        True,
    ),
    "no-cloud-init": (INIT, {}, {"ide2": None, "ciuser": None, "cipassword": None}, True),
    "tpm": ({}, {"tpm_state": [{}]}, {}, True),
    "no-tpm": ({"tpm_state": [{}]}, {}, {"tpmstate0": None}, True),
    "efi": ({"bios": "ovmf"}, {"bios": "ovmf", "efi_disk": [{"type": "4m"}]}, {}, True),
    "efi-moved": (
        {"bios": "ovmf", "efi_disk": [{"type": "4m"}]},
        {"bios": "ovmf", "efi_disk": [{"type": "4m", "datastore_id": "local"}]},
        {},
        False,
    ),
    "stopped": ({}, {"started": False}, {}, False),
    "started": ({"started": False}, {}, {}, True),
    "template": ({}, {"template": True, "started": False}, {"template": 1}, False),
    "purge-setting": ({}, {"purge_on_destroy": False}, {}, False),
    "usb": ({}, {"usb": [{"host": "spice"}]}, {}, True),
    "smbios": ({}, {"smbios": [{"family": "it", "sku": "x"}]}, {}, True),
    "rng": ({}, {"rng": [{"source": "/dev/urandom"}]}, {}, True),
    "hotplug": ({}, {"hotplug": "disk,network"}, {"hotplug": "disk,network"}, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_in_place_and_leaves_nothing_to_do(change: str) -> None:
    before, after, expected, restarts = CHANGES[change]

    async def scenario(it: Bench, running: lab.Running) -> None:
        old, new = BASE | before, BASE | after
        await it.apply(VM, **old)
        assert await it.is_settled(VM, **old)
        uuid, mark = config_of(running)["smbios1"], running.world.journal.count
        await it.apply(VM, **new)
        assert await it.is_settled(VM, **new)
        config = config_of(running)
        assert {key: config.get(key) for key in expected} == expected
        assert not running.world.guests.get(200)["pending"]  # type: ignore[index]
        assert bool(starts(running, mark)) == restarts
        if change != "smbios":
            assert config["smbios1"] == uuid
        if change == "protection":
            await it.apply(VM, **old)
        await it.remove(VM)
        assert not running.world.guests.all()

    run(scenario)


REPLACED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "number": ({}, {"vm_id": 201}),
    "node": ({}, {"node_name": "pve2"}),
    "tpm-version": ({"tpm_state": [{"version": "v1.2"}]}, {"tpm_state": [{"version": "v2.0"}]}),
    "efi-type": (
        {"bios": "ovmf", "efi_disk": [{"type": "2m"}]},
        {"bios": "ovmf", "efi_disk": [{"type": "4m"}]},
    ),
}


@pytest.mark.parametrize("change", REPLACED)
def test_what_cannot_be_changed_replaces_the_vm(change: str) -> None:
    before, after = REPLACED[change]

    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, **BASE | before)
        await it.refresh(VM)
        assert it.plan(VM, **BASE | after).replace

    run(scenario)


def test_a_disk_does_not_shrink() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, **BASE)
        with pytest.raises(Failed, match="cannot be made smaller"):
            it.plan(VM, **BASE | {"disk": [{"interface": "scsi0", "size": 1}, BASE["disk"][1]]})

    run(scenario)


def test_the_disk_that_boots_is_not_taken_away() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, **BASE)
        with pytest.raises(Failed, match="boot order"):
            await it.apply(VM, **BASE | {"disk": [BASE["disk"][1]]})

    run(scenario)


def test_a_clone_keeps_the_disks_of_its_template_beside_its_own() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        disk = [{"interface": "scsi0", "size": 2, "datastore_id": "local-lvm"}]
        await it.apply(VM, node_name="pve1", vm_id=900, started=False, template=True, disk=disk)
        it.states.clear()
        own = [{"interface": "scsi1", "size": 1, "datastore_id": "local-lvm"}]
        wanted = {"node_name": "pve1", "vm_id": 200, "clone": [{"vm_id": 900}], "started": False}
        await it.apply(VM, **wanted, disk=own)
        assert await it.is_settled(VM, **wanted, disk=own)
        await it.apply(VM, **wanted, disk=[{**own[0], "size": 2}])
        assert {"scsi0", "scsi1"} <= set(config_of(running))

    run(scenario)


def test_a_running_vm_moves_to_another_node() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        here, there = BASE | {"migrate": True}, BASE | {"migrate": True, "node_name": "pve2"}
        await it.apply(VM, **here)
        uuid = config_of(running)["smbios1"]
        state = await it.apply(VM, **there)
        guest = running.world.guests.get(200)
        assert guest is not None
        assert (guest["node"], guest["status"], state["node_name"]) == ("pve2", "running", "pve2")
        assert config_of(running)["smbios1"] == uuid
        assert await it.is_settled(VM, **there)

    run(scenario)


def test_without_leave_a_running_vm_is_not_restarted() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        base = BASE | {"reboot_after_update": False}
        await it.apply(VM, **base)
        mark = running.world.journal.count
        await it.apply(VM, **base | {"machine": "q35"})
        assert "restarted" in it.last.problems[0].summary
        assert starts(running, mark) == 0

    run(scenario)


def test_pools_are_changed() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        for pool in ("a", "b"):
            await it.session.client.post("/pools", {"poolid": pool})
        await it.apply(VM, **BASE | {"pool_id": "a"})
        await it.apply(VM, **BASE | {"pool_id": "b"})
        assert await it.is_settled(VM, **BASE | {"pool_id": "b"})
        # One that is not named any more is left as it is.
        assert await it.is_settled(VM, **BASE)

    run(scenario)


DRIFT: dict[str, tuple[dict[str, Any], str]] = {
    "cores": ({"cores": 7}, "cpu"),
    "memory": ({"memory": 999}, "memory"),
    "description": ({"description": "by hand"}, "description"),
    "tags": ({"tags": "by-hand"}, "tags"),
    "onboot": ({"onboot": 0}, "on_boot"),
    "name": ({"name": "other"}, "name"),
    "disk-added": ({"scsi9": "local-lvm:1"}, "disk"),
    "card-added": ({"net5": "virtio,bridge=vmbr0"}, "network_device"),
    "protection": ({"protection": 1}, "protection"),
    "startup": ({"startup": "order=9"}, "startup"),
    "tpm": ({"tpmstate0": "local-lvm:1,version=v2.0"}, "tpm_state"),
    "serial": ({"serial1": "socket"}, "serial_device"),
    "cloud-init": ({"ciuser": "somebody"}, "initialization"),
}


@pytest.mark.parametrize("by_hand", DRIFT)
def test_what_somebody_changes_by_hand_is_seen_and_put_back(by_hand: str) -> None:
    changed, attribute = DRIFT[by_hand]

    async def scenario(it: Bench, running: lab.Running) -> None:
        base = BASE | {"started": False}
        before = await it.apply(VM, **base)
        await it.session.client.put("/nodes/pve1/qemu/200/config", changed)
        after = await it.refresh(VM)
        assert after is not None
        assert after[attribute] != before[attribute]
        await it.apply(VM, **base)
        assert await it.is_settled(VM, **base)

    run(scenario)


def test_a_vm_stopped_by_hand_is_started_again() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, **BASE)
        await it.session.client.post("/nodes/pve1/qemu/200/status/stop")
        await it.session.client.pause(0.3)
        assert not await it.is_settled(VM, **BASE)
        await it.apply(VM, **BASE)
        guest = running.world.guests.get(200)
        assert guest is not None
        assert guest["status"] == "running"

    run(scenario)


def test_a_vm_removed_by_hand_is_made_again() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, **BASE | {"started": False})
        await it.session.client.delete("/nodes/pve1/qemu/200")
        await it.session.client.pause(0.3)
        assert await it.refresh(VM) is None
        await it.apply(VM, **BASE)
        assert await it.is_settled(VM, **BASE)

    run(scenario)
