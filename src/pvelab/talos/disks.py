"""What Talos writes to the disks of a VM, and what its VM knows of it: installed, configured, wiped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.talos.boot import drives_of, system_disk
from pvelab.talos.images import AGENT, extensions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.talos.configuration import MachineConfig
    from pvelab.talos.machine import TalosMachine
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "install",
    "lose",
    "make_run",
    "parse_installer",
    "read_state",
    "set_address",
    "system_volume",
    "talos_on",
    "tell_guest",
    "upgrade",
    "wipe",
    "write_state",
]

_INSTALLER = re.compile(
    r"(?:.*/)?(?:(?P<platform>[a-z]+)-)?installer(?P<secureboot>-secureboot)?"
    r"(?:/(?P<schematic>[0-9a-f]{64}))?:(?P<version>v[\w.+-]+)"
)
_VANILLA = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"


def system_volume(machine: TalosMachine) -> str | None:
    """Return the option of the disk that Talos is on, None if it is on none."""
    found = system_disk(drives_of(machine.world, machine.guest))
    return None if found is None else found.key


def talos_on(machine: TalosMachine, key: str) -> Mapping[str, Any] | None:
    """Return the Talos on a disk."""
    drive = drives_of(machine.world, machine.guest).get(key)
    return None if drive is None else drive.talos


def read_state(machine: TalosMachine) -> Mapping[str, Any]:
    """Return what the partitions of the system disk hold: `config` and `etcd`."""
    found = system_disk(drives_of(machine.world, machine.guest))
    state: Mapping[str, Any] = {} if found is None else (found.volume["image"].get("state") or {})
    return state


def write_state(machine: TalosMachine, **fields: Any) -> None:
    """Write to the partitions of the system disk; None removes."""
    found = system_disk(drives_of(machine.world, machine.guest))
    if found is None:
        return
    image = found.volume["image"]
    state = {**(image.get("state") or {}), **fields}
    kept = {name: value for name, value in state.items() if value is not None}
    _write(machine, found.volume, {**image, "state": kept})
    machine.tell()


def install(machine: TalosMachine, key: str, config: MachineConfig) -> None:
    """Write Talos and a configuration to a disk, in place of what is on it."""
    drive = drives_of(machine.world, machine.guest)[key]
    talos = _installed(machine, str(config.install.get("image") or ""))
    image = {"name": f"talos-{talos['version']}", "talos": talos, "state": {"config": config.text}}
    _write(machine, drive.volume, image)


def upgrade(machine: TalosMachine, installer: str) -> None:
    """Write another Talos beside the one on the system disk; what is in its partitions stays."""
    found = system_disk(drives_of(machine.world, machine.guest))
    if found is not None:
        talos = _installed(machine, installer)
        image = {**found.volume["image"], "name": f"talos-{talos['version']}", "talos": talos}
        _write(machine, found.volume, image)


def wipe(machine: TalosMachine, what: Mapping[str, Any]) -> None:
    """Wipe the system disk, or the partitions that are named, and the user disks that are named."""
    drives = drives_of(machine.world, machine.guest)
    labels, mode = what["labels"], what["mode"]
    system = system_disk(drives)
    if system is not None and mode != "USER_DISKS":
        image = system.volume["image"]
        state = dict(image.get("state") or {})
        if "STATE" in labels:
            state.pop("config", None)
        if "EPHEMERAL" in labels:
            state.pop("etcd", None)
        _write(machine, system.volume, {**image, "state": state} if labels else None)
    if mode != "SYSTEM_DISK":
        for drive in drives.values():
            if f"/dev/{drive.device}" in what["disks"]:
                _write(machine, drive.volume, None)


def lose(machine: TalosMachine) -> None:
    """Lose everything that is on the system disk."""
    found = system_disk(drives_of(machine.world, machine.guest))
    if found is not None:
        _write(machine, found.volume, None)


def set_address(machine: TalosMachine, address: str | None) -> None:
    """Let the first NIC have the address of the configuration, if it has one."""
    run = machine.guest["run"]
    told = {**run.get("talos", {}), **({"ip": address} if address else {})}
    if run.get("talos") != told:
        with machine.world.store.transaction():
            machine.world.guests.update(machine.guest, run={**run, "talos": told})


def tell_guest(machine: TalosMachine, image: Mapping[str, Any] | None, problem: str | None) -> None:
    """Let the VM know what runs in it, in the running transaction."""
    world, guest = machine.world, machine.guest
    world.guests.update(guest, run=make_run(guest, image, problem))


def make_run(guest: Document, image: Mapping[str, Any] | None, problem: str | None) -> dict[str, Any]:
    """Return the running state of a VM that booted Talos, or did not come up."""
    run = {key: value for key, value in guest["run"].items() if key != "halted"}
    found = image or {}
    run["talos"] = {
        "agent": AGENT in found.get("extensions", ()),
        "platform": found.get("platform", "metal"),
    }
    return {**run, "halted": problem} if problem else run


def parse_installer(image: str) -> dict[str, Any] | None:
    """Read the reference of an installer image: what it puts on a disk, None if it is none."""
    found = _INSTALLER.fullmatch(image)
    if found is None:
        return None
    return {
        "schematic": found["schematic"] or _VANILLA,
        "version": found["version"],
        "secureboot": found["secureboot"] is not None,
        # An image that names no platform keeps that of the machine.
        **({"platform": found["platform"]} if found["platform"] else {}),
    }


def _installed(machine: TalosMachine, installer: str) -> dict[str, Any]:
    """Return what an installer image puts on a disk; the same as what runs, where it is not readable."""
    found = parse_installer(installer)
    base = {**machine.image, "iso": False}
    return base if found is None else {**base, **found, **_contents(machine.world, found["schematic"])}


def _contents(world: World, schematic: str) -> dict[str, Any]:
    known = world.store.get("talos_schematics", schematic)
    if known is not None:
        return {"extensions": list(known["extensions"]), "kernel_args": list(known["kernel_args"])}
    return {"extensions": list(extensions_of(schematic)), "kernel_args": []}


def _write(machine: TalosMachine, volume: Mapping[str, Any], image: Mapping[str, Any] | None) -> None:
    store = machine.world.store
    document = {key: value for key, value in volume.items() if key != "image"}
    with store.transaction():
        store.put(
            "volumes",
            f"{volume['scope']}|{volume['volid']}",
            document if image is None else {**document, "image": image},
        )
