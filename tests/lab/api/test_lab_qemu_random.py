"""Random calls on a few VMs: whatever they do, nothing breaks and every byte has an owner."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import with_lab

Params = dict[str, Any]
Operation = tuple[str, str, Callable[[random.Random], Params]]

DISKS = ("scsi0", "scsi1", "virtio0", "ide2", "sata0", "efidisk0", "tpmstate0")
VOLUMES = (
    *("local-lvm:1", "local-lvm:2", "local:1,format=qcow2", "nfs:1,format=qcow2", "tank:1"),
    *("none,media=cdrom", "local-lvm:cloudinit", "local:cloudinit"),
    *(
        "local-lvm:vm-100-disk-0",
        "local-lvm:vm-101-disk-0,ssd=1",
        "local-lvm:0,import-from=local-lvm:vm-100-disk-0",
    ),
)
STORAGES = ("local", "local-lvm", "nfs", "tank")
SNAPSHOTS = ("s1", "s2")
OPTIONS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(DISKS, VOLUMES),
    "net0": ("virtio,bridge=vmbr0", "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=3"),
    "hotplug": ("0", "1", "disk,cloudinit"),
    "boot": ("order=scsi0", "order=ide2;scsi1"),
    "memory": (512, 1024),
    "ipconfig0": ("ip=dhcp", "ip=10.0.0.2/24"),
    "delete": tuple(f"{first},{second}" for first in DISKS for second in DISKS),
    "revert": DISKS,
}


def settings(rand: random.Random) -> Params:
    chosen = rand.sample(sorted(OPTIONS), rand.randint(1, 3))
    return {name: rand.choice(OPTIONS[name]) for name in chosen}


def vmid(rand: random.Random) -> int:
    return rand.randint(100, 103)


def new_vm(rand: random.Random) -> Params:
    disks = {"scsi0": rand.choice(VOLUMES[:5]), "scsi1": rand.choice(VOLUMES[:5])}
    return {"vmid": vmid(rand), **disks, "ide2": "local-lvm:cloudinit", "agent": 1}


def clone(rand: random.Random) -> Params:
    how: tuple[Params, ...] = (
        {},
        {"full": 0},
        {"full": 1, "storage": rand.choice(STORAGES)},
        {"snapname": "s1"},
        {"target": "pve2"},
    )
    return {"newid": vmid(rand), **rand.choice(how)}


def move(rand: random.Random) -> Params:
    where = ({"storage": rand.choice(STORAGES), "delete": rand.randint(0, 1)}, {"target-vmid": vmid(rand)})
    return {"disk": rand.choice(DISKS), **rand.choice(where)}


def migrate(rand: random.Random) -> Params:
    where: tuple[Params, ...] = ({}, {"targetstorage": "1"}, {"targetstorage": rand.choice(STORAGES)})
    return {"target": "pve2", "online": 1, "with-local-disks": 1, **rand.choice(where)}


OPERATIONS: tuple[Operation, ...] = (
    *(("POST", "", new_vm),) * 3,
    *(("PUT", "/{}/config", settings),) * 4,
    ("POST", "/{}/status/start", lambda _: {}),
    ("POST", "/{}/status/stop", lambda _: {}),
    ("POST", "/{}/status/reboot", lambda _: {}),
    ("POST", "/{}/status/suspend", lambda rand: {"todisk": rand.randint(0, 1)}),
    ("POST", "/{}/status/resume", lambda _: {}),
    ("POST", "/{}/clone", clone),
    ("POST", "/{}/template", lambda _: {}),
    ("POST", "/{}/snapshot", lambda rand: {"snapname": rand.choice(SNAPSHOTS), "vmstate": 1}),
    *(("DELETE", f"/{{}}/snapshot/{name}", lambda _: {}) for name in SNAPSHOTS),
    *(("POST", f"/{{}}/snapshot/{name}/rollback", lambda _: {}) for name in SNAPSHOTS),
    ("POST", "/{}/move_disk", move),
    ("POST", "/{}/migrate", migrate),
    ("PUT", "/{}/resize", lambda rand: {"disk": rand.choice(DISKS), "size": "+1G"}),
    ("PUT", "/{}/unlink", lambda rand: {"idlist": rand.choice(DISKS), "force": rand.randint(0, 1)}),
    ("DELETE", "/{}", lambda _: {}),
    ("GET", "/{}/cloudinit/dump", lambda _: {"type": "network"}),
    ("GET", "/{}/agent/network-get-interfaces", lambda _: {}),
)


def unowned(api: LabClient) -> set[str]:
    """Return the volumes that no VM refers to."""
    referenced = set()
    for guest in api.world.guests.all().values():
        kept = [snapshot["config"] for snapshot in guest["snapshots"].values()]
        kept += [{"vmstate": snapshot.get("vmstate")} for snapshot in guest["snapshots"].values()]
        for config in (guest["config"], guest["pending"], *kept):
            referenced |= {str(value).partition(",")[0] for value in config.values()}
    return {str(volume["volid"]) for volume in api.world.store.items("volumes").values()} - referenced


def check_accounts(api: LabClient) -> None:
    """Compare what the storages count with what is in them."""
    world = api.world
    for storage in STORAGES:
        for node in ("pve1", "pve2"):
            volumes = world.storages.volumes(storage, node)
            size = sum(int(volume["size"]) - int(volume.get("borrowed", 0)) for volume in volumes)
            assert world.storages.used(storage, node) == size


async def attempt(api: LabClient, method: str, path: str, params: Params) -> str:
    """Make a call, wait for its task if it starts one, and return how it went."""
    try:
        answer = await api.call(method, path, params)
    except Refused as refusal:
        return str(refusal)
    return await api.done(answer) if isinstance(answer, str) and answer.startswith("UPID:") else "OK"


@pytest.mark.parametrize("seed", range(3))
async def test_random_calls_leave_no_volume_without_an_owner(seed: int) -> None:
    async with with_lab() as api:
        rand = random.Random(seed)
        with api.world.store.transaction():
            put = api.world.store.put
            put("storages", "nfs", {"storage": "nfs", "type": "nfs", "path": "/mnt/x", "content": "images"})
            put("storages", "tank", {"storage": "tank", "type": "zfspool", "pool": "t", "content": "images"})
        for _ in range(200):
            method, path, params = rand.choice(OPERATIONS)
            node = rand.choice(("pve1", "pve1", "pve2"))
            outcome = await attempt(api, method, f"/nodes/{node}/qemu{path.format(vmid(rand))}", params(rand))
            assert "internal error" not in outcome
            assert unowned(api) == set()
        check_accounts(api)
