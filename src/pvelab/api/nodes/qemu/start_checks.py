"""What Proxmox and QEMU refuse when a VM is started, in the order in which they look."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import cpu, machine_types, passthrough
from pvelab.api.nodes.qemu.hotplug import hotplug_features
from pvelab.api.nodes.qemu.pending import cdrom_volumes, cloudinit_volumes, disk_volumes, effective
from pvelab.api.nodes.status import SWAP
from pvelab.server.problems import PveError
from pvelab.world.bridges import exists
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volume_names import parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.storage.allocation import Worker
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["check_start", "require_snippets"]

_MIB = 2**20
_QEMU_EXITED = "start failed: QEMU exited with code 1"


def check_start(world: World, worker: Worker, guest: Document) -> list[str]:
    """Refuse to start a VM that Proxmox would not start; return the PCI devices that it will have.

    Raises:
        PveError: It lacks a file, a disk or a device, or asks for more than its node has.
    """
    config, node = effective(guest), str(guest["node"])
    require_snippets(world, guest, config)
    _require_volumes(world, guest)
    machine_types.require_machine_version(world, config, node)
    devices = passthrough.require_pci_devices(world, guest, config)
    passthrough.require_usb_mappings(world, config, node)
    cpu.require_vcpus(world, config, node)
    cpu.require_cpu(world, config)
    passthrough.require_directories(world, config, node)
    problem = _problem_of_qemu(world, config, node)
    if problem is not None:
        for line in problem.split("\n"):
            worker.log(line)
        raise PveError(_QEMU_EXITED)
    return devices


def require_snippets(world: World, guest: Document, config: Mapping[str, Any]) -> None:
    """Refuse to make a cloud-init drive from files that are not there; without a drive, none are read.

    Raises:
        PveError: A snippet of `cicustom` is not on a storage of the VM's node.
    """
    if not any(owner_of(volid) == guest["vmid"] for volid in cloudinit_volumes(world, config)):
        return
    given = dict(part.partition("=")[::2] for part in str(config.get("cicustom", "")).split(","))
    for part in ("network", "user", "meta", "vendor"):
        if part in given:
            _require_snippet(world, given[part], str(guest["node"]))


def _require_snippet(world: World, volid: str, node: str) -> None:
    storage, name = parse_volume_id(volid)
    if parse_name(world.storages.config(storage), name).content != "snippets":
        raise PveError(f"{volid} is not in the snippets directory")
    world.storages.require(storage, node)
    world.volumes.require(volid, node)


def _require_volumes(world: World, guest: Document) -> None:
    node = str(guest["node"])
    for volid in disk_volumes(world, {**guest["config"], **guest["pending"]}).values():
        if ":" in volid:
            world.storages.require(volid.partition(":")[0], node)
            world.volumes.require(volid, node)
    for volid in cdrom_volumes(world, {**guest["config"], **guest["pending"]}):
        world.volumes.require(volid, node)


def _problem_of_qemu(world: World, config: Mapping[str, Any], node: str) -> str | None:
    """Return what QEMU says before it gives up, None if it runs."""
    machine = machine_types.unsupported_machine(world, config)
    if machine is not None:
        return f'kvm: unsupported machine type: "{machine}"\nUse -machine help to list supported machines'
    too_large = _too_large_memory(world, config, node)
    if too_large is not None:
        return f"kvm: cannot set up guest memory '{too_large}': Cannot allocate memory"
    for key, value in config.items():
        bridge = re.search(r"(?:^|,)bridge=([^,]+)", str(value)) if re.fullmatch(r"net\d+", key) else None
        if bridge is not None and not exists(world.store, node, bridge[1]):
            return f"bridge '{bridge[1]}' does not exist"
    return None


def _too_large_memory(world: World, config: Mapping[str, Any], node: str) -> str | None:
    """Return the block of memory that the node's kernel refuses: one that is larger than all that it has.

    The sum of all VMs may be larger, since memory is taken when it is used.
    """
    if "memory" in hotplug_features(config):
        return None
    size = int(str(config.get("memory", 512)).removeprefix("current=")) * _MIB
    name = "pc.ram"
    if int(config.get("numa", 0)):
        name, size = "ram-node0", size // int(config.get("sockets", 1))
    return name if size > int(world.cluster.require_node(node)["memory"]) + SWAP else None
