"""Virtual machines."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.disks import Cdrom, Disk, EfiDisk, Tpm
from stackyard.desired.guest import Agent, CloudInit, GuestBase
from stackyard.desired.hardware import (
    Audio,
    Cpu,
    Display,
    Memory,
    NumaNode,
    PciDevice,
    RandomNumbers,
    Serial,
    UsbDevice,
    Watchdog,
)
from stackyard.desired.nic import Nic
from stackyard.desired.values import Line, Many

__all__ = ["Vm"]

BootDevice = Annotated[str, StringConstraints(pattern=r"^(ide|sata|scsi|virtio|net|hostpci|usb)\d+$")]


class Vm(GuestBase):
    """One virtual machine."""

    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    numa_nodes: Annotated[Many[NumaNode], Field(max_length=8)] = ()
    machine: Line | None = None
    bios: Literal["seabios", "ovmf"] = "seabios"
    os_type: Literal[
        "l24",
        "l26",
        "other",
        "solaris",
        "w2k",
        "w2k3",
        "w2k8",
        "win7",
        "win8",
        "win10",
        "win11",
        "wvista",
        "wxp",
    ] = "l26"
    scsi_hardware: Literal[
        "lsi", "lsi53c810", "megasas", "pvscsi", "virtio-scsi-pci", "virtio-scsi-single"
    ] = "virtio-scsi-pci"
    disks: Annotated[Many[Disk], Field(max_length=31)] = ()
    efi_disk: EfiDisk | None = None
    tpm: Tpm | None = None
    cdrom: Cdrom | None = None
    nics: Annotated[Many[Nic], Field(max_length=32)] = ()
    boot_order: Many[BootDevice] = ()
    # One serial port by default: the first boot of some Debian images panics without.
    serials: Annotated[Many[Serial], Field(max_length=4)] = (Serial(),)
    display: Display | None = None
    audio: Audio | None = None
    random_numbers: RandomNumbers | None = None
    watchdog: Watchdog | None = None
    agent: Agent = Agent()
    cloud_init: CloudInit | None = None
    pci_devices: Annotated[Many[PciDevice], Field(max_length=16)] = ()
    usb_devices: Annotated[Many[UsbDevice], Field(max_length=14)] = ()
    hotplug: Line | None = None
    tablet: bool = True
    acpi: bool = True
    kvm_arguments: Line | None = None
    keyboard_layout: Line | None = None
    # Move to another node instead of being replaced there.
    migrate: bool = True
    stop_on_destroy: bool = False
    reboot_after_update: bool = True

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.efi_disk is not None and self.bios != "ovmf":
            raise ValueError("an `efi_disk` needs `bios: ovmf`")
        slots = [disk.interface for disk in self.disks]
        if self.cdrom is not None:
            slots.append(self.cdrom.interface)
        if self.cloud_init is not None:
            slots.append(self.cloud_init.interface)
        twice = sorted({slot for slot in slots if slots.count(slot) > 1})
        if twice:
            raise ValueError(f"used by more than one drive: {', '.join(twice)}")
        return self
