"""`proxmox_cloned_vm`: what its configuration names is managed, and nothing else of it is touched."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import ROOMY
from tests.support.provider_bench import Bench, Failed, bench

from pvelab.world.storage.contents import put_stand_in
from stackyard import lab
from stackyard.clients import proxmox

VM, CLONED = "proxmox_virtual_environment_vm", "proxmox_cloned_vm"
PLAIN: dict[str, Any] = {
    "node_name": "pve1",
    "id": 300,
    "started": False,
    "clone": {"source_vm_id": 900},
}
IMAGE = "local:import/small.qcow2"


@contextlib.asynccontextmanager
async def run(**source: Any) -> AsyncIterator[tuple[Bench, lab.Running]]:
    """Give a bench whose lab has a VM to clone, 900."""
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, bench(running) as it:
        params = {
            "vmid": 900,
            "description": "what it is for",
            "tags": "base",
            "cores": 2,
            "memory": 1024,
            "scsi0": "local-lvm:2,discard=on,ssd=1",
            "net0": "virtio,bridge=vmbr0,firewall=1",
            "net1": "e1000,bridge=vmbr0",
            **source,
        }
        client = it.session.client
        await proxmox.wait_for(client, await client.post("/nodes/pve1/qemu", params), timeout_s=10)
        with running.world.store.transaction():
            put_stand_in(running.world, IMAGE, "pve1", 100 * 2**20)
        yield it, running


def config_of(running: lab.Running, vm_id: int = 300) -> dict[str, Any]:
    found = dict(running.world.guests.all()[str(vm_id)]["config"])
    return {key: value for key, value in found.items() if key not in ("meta", "smbios1", "vmgenid", "digest")}


def without_address(card: str) -> str:
    return ",".join(part for part in card.split(",") if ":" not in part)


async def test_a_clone_that_names_nothing_is_as_its_source() -> None:
    async with run() as (it, running):
        await it.apply(CLONED, **PLAIN)
        source, clone = config_of(running, 900), config_of(running)
        for name in ("description", "tags", "cores", "memory"):
            assert clone[name] == source[name]
        assert clone["scsi0"].partition(",")[2] == source["scsi0"].partition(",")[2]
        assert without_address(clone["net0"]) == without_address(source["net0"])
        assert it.states[CLONED]["disk"] is it.states[CLONED]["name"] is it.states[CLONED]["tags"] is None
        assert await it.is_settled(CLONED, **PLAIN)


async def test_what_is_taken_out_stays_and_what_is_listed_goes() -> None:
    named = {
        "cpu": {"cores": 4},
        "network": {"net0": {"bridge": "vmbr0", "tag": 5}, "net2": {"bridge": "vmbr0"}},
        "disk": {"scsi1": {"datastore_id": "local-lvm", "size_gb": 1}},
        "name": "copy",
    }
    async with run() as (it, running):
        await it.apply(CLONED, **PLAIN, **named)
        before = config_of(running)
        await it.apply(CLONED, **PLAIN)
        assert config_of(running) == before
        gone = {"network": ["net1", "net2", "net9"], "disk": ["scsi1"]}
        await it.apply(CLONED, **PLAIN, delete=gone)
        assert before.keys() - config_of(running).keys() == {"net1", "net2", "scsi1"}
        assert await it.is_settled(CLONED, **PLAIN, delete=gone)


async def test_a_change_leaves_addresses_and_options_that_are_not_named() -> None:
    disk = {"scsi0": {"size_gb": 3}}
    async with run() as (it, running):
        await it.apply(CLONED, **PLAIN, network={"net0": {"bridge": "vmbr0"}}, disk=disk)
        before = config_of(running)
        assert "firewall=1" in before["net0"]
        assert "discard=on,size=3G,ssd=1" in before["scsi0"]
        await it.apply(CLONED, **PLAIN, network={"net0": {"bridge": "vmbr0", "tag": 9}}, disk=disk)
        assert config_of(running)["net0"] == f"{before['net0']},tag=9"


async def test_what_somebody_took_away_or_changed_is_put_back() -> None:
    named = {
        "network": {"net0": {"bridge": "vmbr0", "firewall": True}, "net1": {"model": "e1000"}},
        "disk": {"scsi0": {"ssd": True}},
        "cpu": {"cores": 2},
        "memory": {"size": 1024},
        "cdrom": {"ide2": {"file_id": "none"}},
    }
    async with run() as (it, running):
        await it.apply(CLONED, **PLAIN, **named)
        volume = config_of(running)["scsi0"].partition(",")[0]
        changed = {"net0": "virtio,bridge=vmbr0", "scsi0": volume, "delete": "net1,ide2,cores"}
        await it.session.client.put("/nodes/pve1/qemu/300/config", changed)
        state = await it.refresh(CLONED)
        assert state is not None
        assert state["network"].keys() == {"net0"}
        assert state["network"]["net0"]["firewall"] is False
        assert (state["disk"]["scsi0"]["ssd"], state["cpu"]["cores"], state["cdrom"]) == (False, None, {})
        await it.apply(CLONED, **PLAIN, **named)
        assert await it.is_settled(CLONED, **PLAIN, **named)
        assert {"net1", "ide2", "cores"} <= config_of(running).keys()


EMPTIED = {"description": "", "tags": []}


async def test_what_is_named_as_empty_is_taken_from_the_clone() -> None:
    async with run() as (it, running):
        await it.apply(CLONED, **PLAIN, **EMPTIED)
        assert config_of(running).keys() & EMPTIED.keys() == set()
        assert await it.is_settled(CLONED, **PLAIN, **EMPTIED)


DISKS = {
    "smaller": ({"scsi0": {"size_gb": 1}}, "Disk scsi0 has 2 GiB, and a disk cannot be made smaller"),
    "nowhere": ({"scsi1": {"size_gb": 1}}, "The VM has no disk scsi1: to make one, `datastore_id`"),
    "image": (
        {"scsi1": {"datastore_id": "local", "size_gb": 1, "import_from": IMAGE}},
        "a disk cannot be smaller than its image",
    ),
    "no-size": ({"scsi1": {"datastore_id": "local"}}, "to make one on local, `size_gb` is needed"),
}


@pytest.mark.parametrize("which", DISKS)
async def test_a_disk_that_cannot_be_had_is_refused_before_anything_is_cloned(which: str) -> None:
    disk, message = DISKS[which]
    async with run() as (it, running):
        with pytest.raises(Failed, match=message):
            await it.apply(CLONED, **PLAIN, disk=disk)
        assert list(running.world.guests.all()) == ["900"]


async def test_disks_are_moved_grown_imported_and_attached() -> None:
    async with run() as (it, running):
        disk = {
            "scsi0": {"datastore_id": "local", "size_gb": 3},
            "scsi1": {"datastore_id": "local-lvm", "import_from": IMAGE, "size_gb": 4},
            "scsi2": {"datastore_id": "local", "size_gb": 1, "format": "qcow2", "serial": "abc"},
        }
        await it.apply(CLONED, **PLAIN, disk=disk)
        found = config_of(running)
        assert found["scsi0"].startswith("local:300/")
        assert "discard=on" in found["scsi0"]
        assert [found[slot].partition("size=")[2][:2] for slot in disk] == ["3G", "4G", "1G"]
        assert await it.is_settled(CLONED, **PLAIN, disk=disk)
        with pytest.raises(Failed, match="cannot be made smaller: 2 is too small"):
            it.plan(CLONED, **PLAIN, disk={**disk, "scsi0": {"size_gb": 2}})
        volume = found["scsi2"].partition(",")[0]
        await it.apply(CLONED, **PLAIN, disk={"scsi5": {"file": volume}}, delete={"disk": ["scsi2"]})
        assert config_of(running)["scsi5"].startswith(volume)


async def test_a_clone_for_another_node_gets_there_also_from_a_local_storage() -> None:
    config = {**PLAIN, "node_name": "pve2", "clone": {"source_vm_id": 900, "source_node_name": "pve1"}}
    async with run() as (it, running):
        await it.apply(CLONED, **config)
        assert running.world.guests.all()["300"]["node"] == "pve2"
        assert config_of(running)["description"] == "what it is for"


async def test_a_snapshot_is_cloned_as_it_was() -> None:
    async with run() as (it, running):
        client = it.session.client
        snapshot = {"snapname": "before", "description": "as it was"}
        upid = await client.post("/nodes/pve1/qemu/900/snapshot", snapshot)
        await proxmox.wait_for(client, upid, timeout_s=10)
        await client.put("/nodes/pve1/qemu/900/config", {"cores": 8})
        clone = {"source_vm_id": 900, "snapshot_name": "before", "pool_id": None}
        await it.apply(CLONED, **{**PLAIN, "clone": clone})
        assert config_of(running)["cores"] == 2


async def test_a_clone_is_started_and_stopped_as_it_says() -> None:
    config = {**PLAIN, "stop_on_destroy": True}
    async with run() as (it, running):
        for started in (True, False, True):
            state = await it.apply(CLONED, **{**config, "started": started})
            assert state["started"] is started
        await it.remove(CLONED)
        assert list(running.world.guests.all()) == ["900"]


async def test_an_imported_clone_is_not_replaced_for_a_source_that_nobody_knows() -> None:
    async with run() as (it, _):
        await it.apply(CLONED, **PLAIN)
        del it.states[CLONED]
        await it.adopt(CLONED, "pve1/300")
        assert it.plan(CLONED, **PLAIN).replace == []
        await it.apply(CLONED, **PLAIN)
        other = {**PLAIN, "clone": {"source_vm_id": 901}}
        assert it.plan(CLONED, **other).replace == [("clone", "source_vm_id")]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both": (
        {"network": {"net1": {}}, "delete": {"network": ["net1"]}},
        "`delete.network` names net1, which `network` sets",
    ),
    "drive": ({"cdrom": {"ide2": {}}, "delete": {"disk": ["ide2"]}}, "which `cdrom` sets"),
    "card": ({"network": {"eth0": {}}}, "'eth0' is none"),
    "slot": ({"disk": {"ide4": {}}}, "'ide4' is none"),
    "gone": ({"delete": {"disk": ["disk0"]}}, "'disk0' is none"),
    "address": ({"network": {"net0": {"mac_address": "BC:24"}}}, "must be a MAC address"),
    "trunks": ({"network": {"net0": {"trunks": [1, 4095]}}}, "4095 is none"),
    "retries": ({"clone": {"source_vm_id": 900, "retries": 11}}, "`clone.retries` must be 1 to 10"),
    "memory": ({"memory": {"size": 16}}, "`memory.size` must be 64 to"),
}


@pytest.mark.parametrize("which", REFUSED)
async def test_a_wrong_value_is_refused_before_anything_is_planned(which: str) -> None:
    more, message = REFUSED[which]
    async with run() as (it, _):
        with pytest.raises(Failed, match=message):
            it.plan(CLONED, **{**PLAIN, **more})
