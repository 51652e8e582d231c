"""Disks of virtual machines."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.files import File
from stackyard.desired.values import Line, Value

__all__ = ["Cdrom", "Disk", "EfiDisk", "SpeedLimits", "Tpm"]

DiskInterface = Annotated[
    str,
    StringConstraints(pattern=r"^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5]))$"),
]
CdromInterface = Annotated[str, StringConstraints(pattern=r"^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30))$")]
Format = Literal["raw", "qcow2", "vmdk"]
Limit = Annotated[int, Field(ge=1)]


class SpeedLimits(Value):
    """How fast a disk may be: megabytes or operations a second, and the bursts above them."""

    read_mb: Limit | None = None
    read_burst_mb: Limit | None = None
    write_mb: Limit | None = None
    write_burst_mb: Limit | None = None
    read_iops: Limit | None = None
    read_burst_iops: Limit | None = None
    write_iops: Limit | None = None
    write_burst_iops: Limit | None = None


class Disk(Value):
    """One disk; where `file` names an image, the disk is created from it.

    `import` content is imported by Proxmox itself; an `iso` or `img` is copied by the provider.
    """

    interface: DiskInterface
    datastore: Line
    size_gib: Annotated[int, Field(ge=1)] = 8
    file: File | None = None
    format: Format | None = None
    cache: Literal["none", "directsync", "writethrough", "writeback", "unsafe"] = "none"
    aio: Literal["native", "threads", "io_uring"] = "io_uring"
    ssd: bool = False
    discard: bool = False
    iothread: bool = False
    backup: bool = True
    replicate: bool = True
    queues: Annotated[int, Field(ge=2, le=64)] | None = None
    serial: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,20}$")] | None = None
    speed: SpeedLimits | None = None

    @model_validator(mode="after")
    def _bus_can(self) -> Self:
        bus = self.interface.rstrip("0123456789")
        if self.iothread and bus not in ("scsi", "virtio"):
            raise ValueError(f"`iothread` needs a scsi or virtio disk, this one is {self.interface}")
        if self.ssd and bus == "virtio":
            raise ValueError(f"`ssd` does not exist for virtio disks, this one is {self.interface}")
        if self.queues is not None and bus != "scsi":
            raise ValueError(f"`queues` needs a scsi disk, this one is {self.interface}")
        return self


class EfiDisk(Value):
    """Where UEFI keeps its variables."""

    datastore: Line
    type: Literal["2m", "4m"] = "4m"
    pre_enrolled_keys: bool = False
    format: Format | None = None


class Tpm(Value):
    """The state of a TPM."""

    datastore: Line
    version: Literal["v1.2", "v2.0"] = "v2.0"


class Cdrom(Value):
    """A CD-ROM drive: empty without a file."""

    file: File | None = None
    interface: CdromInterface = "ide3"
