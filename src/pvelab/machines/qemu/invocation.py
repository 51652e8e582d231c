"""The command line of QEMU for a VM, from its configuration."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pvelab.api.nodes.qemu import drives
from pvelab.machines.machine import MachineError
from pvelab.machines.qemu.programs import EMULATOR, Accelerator
from pvelab.world.guests.addresses import list_planned_addresses
from pvelab.world.guests.lineage import disk_keys
from pvelab.world.guests.rows import cpu_count, memory_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.guests.addresses import Interface
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["HostConnections", "HostResources", "arguments", "cloudinit_key", "first_address"]

_MIB = 2**20
_CARDS = {"virtio": "virtio-net-pci", "e1000": "e1000", "e1000e": "e1000e", "rtl8139": "rtl8139"}
_CONTROLLERS = {"virtio-scsi-single": "virtio-scsi-pci", "virtio-scsi-pci": "virtio-scsi-pci"}
_FIRMWARE = (
    "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "/usr/share/OVMF/OVMF_CODE.fd",
    "/usr/share/edk2/ovmf/OVMF_CODE.fd",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    """What this machine gives to guests.

    Attributes:
        accelerator: How instructions are run.
        is_open: Whether guests may reach other machines, and this one.
        exposed: Ports of this machine that guests reach at the address of their gateway.
    """

    accelerator: Accelerator
    is_open: bool = False
    exposed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConnections:
    """What is plugged into a VM from outside.

    Attributes:
        disks: The image file of each disk, by its option.
        seed: The CD image of the cloud-init drive.
        console: The file that its serial port writes to.
        monitor: The descriptor of QEMU's control socket.
        agent: The descriptor of the line to the guest agent.
    """

    disks: Mapping[str, Path]
    seed: Path
    console: Path
    monitor: int
    agent: int


def arguments(world: World, guest: Document, host: HostResources, plugs: HostConnections) -> tuple[str, ...]:
    """Return the whole command line.

    Raises:
        MachineError: The VM wants firmware that this machine does not have.
    """
    config = guest["config"]
    chip = "q35" if "q35" in str(config.get("machine", "")) else "pc"
    cpu = "host" if host.accelerator is Accelerator.KVM else "max"
    return (
        *(EMULATOR, "-name", f"vm-{guest['vmid']}", "-nodefaults", "-no-user-config", "-display", "none"),
        *(
            "-machine",
            f"{chip},accel={host.accelerator}",
            "-cpu",
            cpu,
            "-m",
            str(memory_bytes(config) // _MIB),
        ),
        *("-smp", str(cpu_count(guest)), "-device", "virtio-rng-pci"),
        *("-chardev", f"socket,id=qmp,fd={plugs.monitor}", "-mon", "chardev=qmp,mode=control"),
        *("-chardev", f"file,id=console,path={_quote(plugs.console)}", "-serial", "chardev:console"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={plugs.agent}"),
        *("-device", "virtserialport,id=agent0,chardev=agent,name=org.qemu.guest_agent.0"),
        *_firmware(config),
        *_drives(config, plugs),
        *_networks(world, guest, host),
    )


def cloudinit_key(config: Mapping[str, object]) -> str | None:
    """Return the option of a VM that holds its cloud-init drive, None if it has none."""
    keys = (key for key in config if drives.is_drive(key))
    return next(
        (key for key in keys if drives.is_cloudinit({"file": str(config[key]).partition(",")[0]})), None
    )


def first_address(world: World, guest: Document, key: str) -> str | None:
    """Return the IPv4 address of a NIC of a VM, None if it has none."""
    for interface in list_planned_addresses(world, guest):
        if interface.key == key:
            return next((one.address for one in interface.addresses if one.family == "inet"), None)
    return None


def _firmware(config: Mapping[str, object]) -> list[str]:
    if config.get("bios") != "ovmf":
        return []
    found = next((path for path in _FIRMWARE if Path(path).exists()), None)
    if found is None:
        raise MachineError(
            "The VM has `bios: ovmf`, and no UEFI firmware was found.",
            remedy="Install it (Debian, Ubuntu: apt-get install ovmf), or give the VM `bios: seabios`.",
        )
    return ["-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={found}"]


def _drives(config: Mapping[str, object], plugs: HostConnections) -> list[str]:
    order = {key: number for number, key in enumerate(disk_keys(config), start=1)}
    seed = cloudinit_key(config)
    found = [(key, f"format=qcow2,file={_quote(path)}", "hd") for key, path in plugs.disks.items()]
    if seed is not None:
        found.append((seed, f"format=raw,readonly=on,media=cdrom,file={_quote(plugs.seed)}", "cd"))
    wanted: list[str] = []
    buses = {key.rstrip("0123456789") for key, _, _ in found}
    if "scsi" in buses:
        wanted += ["-device", f"{_CONTROLLERS.get(str(config.get('scsihw')), 'virtio-scsi-pci')},id=scsi"]
    if "sata" in buses:
        wanted += ["-device", "ahci,id=sata"]
    for key, file, kind in found:
        wanted += ["-drive", f"if=none,id=drive-{key},{file}", "-device", _device(key, kind, order.get(key))]
    return wanted


def _device(key: str, kind: str, order: int | None) -> str:
    bus = key.rstrip("0123456789")
    number = int(key.removeprefix(bus))
    boot = "" if order is None else f",bootindex={order}"
    match bus:
        case "virtio":
            return f"virtio-blk-pci,drive=drive-{key}{boot}"
        case "scsi":
            return f"scsi-{kind},bus=scsi.0,scsi-id={number},drive=drive-{key}{boot}"
        case "sata":
            return f"ide-{kind},bus=sata.{number},drive=drive-{key}{boot}"
        case _:
            return f"ide-{kind},bus=ide.{number // 2},unit={number % 2},drive=drive-{key}{boot}"


def _networks(world: World, guest: Document, host: HostResources) -> list[str]:
    config, wanted = guest["config"], list[str]()
    for interface in list_planned_addresses(world, guest):
        model = str(config[interface.key]).partition("=")[0]
        card = f"{_CARDS.get(model, 'virtio-net-pci')},netdev={interface.key},mac={interface.mac}"
        wanted += ["-netdev", _network(world, config, interface, host), "-device", card]
    return wanted


def _network(world: World, config: Mapping[str, object], interface: Interface, host: HostResources) -> str:
    """Return the user-mode network of a NIC: the range and the addresses that the lab says it has."""
    options = [f"user,id={interface.key}", "ipv6=off", f"restrict={'off' if host.is_open else 'on'}"]
    own = next((one for one in interface.addresses if one.family == "inet"), None)
    if own is not None:
        network = ipaddress.ip_interface(f"{own.address}/{own.prefix}").network
        stated = re.search(r"(?:^|,)gw=([^,]+)", str(config.get(f"ipconfig{interface.key[3:]}", "")))
        router = stated[1] if stated else str(network[1])
        taken = {ipaddress.ip_address(own.address), ipaddress.ip_address(router)}
        names = next(
            address for address in (network[number] for number in range(2, 6)) if address not in taken
        )
        options += [f"net={network}", f"host={router}", f"dns={names}", f"dhcpstart={own.address}"]
        options += [f"guestfwd=tcp:{router}:{port}-tcp:127.0.0.1:{port}" for port in host.exposed]
    return ",".join(options)


def _quote(path: Path) -> str:
    """Return a path as an option of QEMU, in which a comma is written twice."""
    return str(path).replace(",", ",,")
