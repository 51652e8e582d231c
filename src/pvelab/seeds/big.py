"""The seed `big`: 20 nodes and 10,000 guests, made by a rule, the same at every start."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pvelab.seeds.model import Seed, SeedCall, SeedGuest, SeedMachine, SeedVolume

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GUESTS", "NODES", "big"]

NODES = 20
GUESTS = 10_000

_GIB = 2**30
_FIRST = 1000
_SHARED = "ceph"
_ROLES = ("web", "db", "cache", "queue", "batch", "mail", "git", "ci", "proxy", "metrics")
_TIERS = ("production", "staging", "development", "test")
_TEMPLATE = 9000
_LOCAL = {
    "type": "dir",
    "path": "/var/lib/vz",
    "content": "iso,vztmpl,snippets,import,images,backup,rootdir",
}


def big() -> Seed:
    """Return the seed: every tenth guest is a container, most run, one node in three has a template."""
    names = tuple(f"pve{number:02}" for number in range(1, NODES + 1))
    guests = tuple(_guests(names))
    pools = [
        SeedCall(method="POST", path="/pools", parameters={"poolid": tier, "comment": f"guests in {tier}"})
        for tier in _TIERS
    ]
    members = [
        SeedCall(
            method="PUT",
            path="/pools",
            parameters={
                "poolid": tier,
                "vms": ",".join(str(guest.vmid) for guest in guests if _tier(guest.vmid) == tier),
            },
        )
        for tier in _TIERS
    ]
    return Seed(
        name="big",
        cluster="big",
        nodes=names,
        machines={
            name: SeedMachine(ip=f"10.31.0.{10 + number}", cpus=128, memory=1024 * _GIB, rootfs=200 * _GIB)
            for number, name in enumerate(names, start=1)
        },
        storages={
            "local": _LOCAL,
            "local-lvm": {
                "type": "lvmthin",
                "thinpool": "data",
                "vgname": "pve",
                "content": "images,rootdir",
            },
            _SHARED: {
                "type": "rbd",
                "pool": "vm",
                "monhost": "10.31.9.1",
                "username": "admin",
                "content": "images,rootdir",
            },
        },
        capacities=(("local", None, 400 * _GIB), ("local-lvm", None, 20_000 * _GIB), (_SHARED, None, 2**50)),
        guests=guests,
        volumes=tuple(
            SeedVolume(volume="local:iso/debian-13.iso", node=name, size=786_432_000) for name in names
        ),
        calls=(*pools, *members),
    )


def _tier(vmid: int) -> str:
    return _TIERS[vmid % 7 % len(_TIERS)]


def _guests(names: tuple[str, ...]) -> Iterator[SeedGuest]:
    templates = names[::3]
    for number, node in enumerate(templates):
        yield _vm(_TEMPLATE + number, node, template=True)
    # The templates are guests too; their numbers lie among those of the others.
    taken = {_TEMPLATE + number for number in range(len(templates))}
    vmids = (vmid for vmid in range(_FIRST, _FIRST + GUESTS) if vmid not in taken)
    for place, vmid in enumerate(vmids):
        node = names[(place + place // len(names)) % len(names)]
        yield _container(vmid, node) if vmid % 10 == 0 else _vm(vmid, node)


def _vm(vmid: int, node: str, *, template: bool = False) -> SeedGuest:
    storage = "local-lvm" if vmid % 3 == 0 else _SHARED
    prefix = "base" if template else "vm"
    config: dict[str, Any] = {
        "name": f"debian-13-{node}" if template else f"{_ROLES[vmid % len(_ROLES)]}-{vmid}",
        "memory": str(1024 << vmid % 5),
        "cores": 1 + vmid % 8,
        "sockets": 1,
        "cpu": "x86-64-v2-AES",
        "ostype": "l26",
        "agent": "enabled=1",
        "scsihw": "virtio-scsi-single",
        "scsi0": f"{storage}:{prefix}-{vmid}-disk-0,iothread=1,size={8 << vmid % 4}G",
        "boot": "order=scsi0",
        "net0": f"virtio={_mac(vmid)},bridge=vmbr0",
        "smbios1": f"uuid={_uuid(vmid)}",
        "vmgenid": _uuid(vmid + 1_000_000),
        "tags": "template" if template else f"{_tier(vmid)};{_ROLES[vmid % len(_ROLES)]}",
    }
    if template:
        config["template"] = 1
    return SeedGuest(vmid=vmid, node=node, config=config, running=not template and vmid % 5 != 0)


def _container(vmid: int, node: str) -> SeedGuest:
    role = _ROLES[vmid // 10 % len(_ROLES)]
    config = {
        "hostname": f"{role}-{vmid}",
        "memory": 512 << vmid % 3,
        "swap": 512,
        "cores": 1 + vmid % 4,
        "arch": "amd64",
        "ostype": "debian",
        "unprivileged": 1,
        "rootfs": f"local-lvm:vm-{vmid}-disk-0,size=8G",
        "net0": f"name=eth0,bridge=vmbr0,hwaddr={_mac(vmid)},ip=dhcp,type=veth",
        "tags": f"{_tier(vmid)};{role}",
    }
    return SeedGuest(vmid=vmid, node=node, type="lxc", config=config, running=vmid % 50 != 0)


def _mac(vmid: int) -> str:
    return f"BC:24:11:{vmid >> 16 & 255:02X}:{vmid >> 8 & 255:02X}:{vmid & 255:02X}"


def _uuid(number: int) -> str:
    text = hashlib.sha256(str(number).encode()).hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"
