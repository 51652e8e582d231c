"""Processors, memory and devices of virtual machines."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.values import Line, Many, Value

__all__ = [
    "Audio",
    "Cpu",
    "Device",
    "Display",
    "Memory",
    "NumaNode",
    "PciDevice",
    "RandomNumbers",
    "Serial",
    "UsbDevice",
    "Watchdog",
]

Ranges = Annotated[str, StringConstraints(pattern=r"^\d+(-\d+)?([,;]\d+(-\d+)?)*$")]


class Cpu(Value):
    """The processors of a guest; containers use `cores`, `limit` and `units` alone."""

    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    sockets: Annotated[int, Field(ge=1, le=16)] = 1
    type: Line = "x86-64-v2-AES"
    architecture: (
        Literal["x86_64", "aarch64", "amd64", "arm64", "armhf", "i386", "riscv32", "riscv64"] | None
    ) = None
    flags: Many[Annotated[str, StringConstraints(pattern=r"^[+-][a-z0-9_.-]+$")]] = ()
    numa: bool = False
    hotplugged: Annotated[int, Field(ge=0, le=2304)] = 0
    limit: Annotated[float, Field(ge=0, le=1024)] = 0
    units: Annotated[int, Field(ge=1, le=262144)] | None = None
    affinity: Ranges | None = None


class Memory(Value):
    """The memory of a virtual machine."""

    dedicated_mib: Annotated[int, Field(ge=16, le=268_435_456)] = 512
    # What ballooning may shrink it to; 0 switches the balloon off.
    floating_mib: Annotated[int, Field(ge=0, le=268_435_456)] = 0
    shared_mib: Annotated[int, Field(ge=0)] = 0
    hugepages: Literal["2", "1024", "any"] | None = None
    keep_hugepages: bool = False

    @model_validator(mode="after")
    def _balloon_fits(self) -> Self:
        if self.floating_mib > self.dedicated_mib:
            raise ValueError("`floating_mib` is what the guest may shrink to: at most `dedicated_mib`")
        return self


class NumaNode(Value):
    """One NUMA node that the guest sees."""

    device: Annotated[str, StringConstraints(pattern=r"^numa[0-7]$")]
    cpus: Ranges
    memory_mib: Annotated[int, Field(ge=1)]
    host_nodes: Ranges | None = None
    policy: Literal["preferred", "bind", "interleave"] | None = None


class Display(Value):
    """The graphics card."""

    type: Line = "std"
    memory_mib: Annotated[int, Field(ge=4, le=512)] | None = None
    clipboard: Literal["vnc"] | None = None


class Serial(Value):
    """A serial port: a socket on the node, or a device of it."""

    device: Annotated[str, StringConstraints(pattern=r"^(socket|/dev/\S+)$")] = "socket"


class Audio(Value):
    """A sound card."""

    device: Literal["AC97", "ich9-intel-hda", "intel-hda"] = "intel-hda"
    driver: Literal["spice"] = "spice"


class RandomNumbers(Value):
    """Where a machine gets random numbers from, and how many bytes in how many milliseconds."""

    source: Literal["/dev/urandom", "/dev/random", "/dev/hwrng"] = "/dev/urandom"
    max_bytes: Annotated[int, Field(ge=1)] | None = None
    period_ms: Annotated[int, Field(ge=1)] | None = None


class Watchdog(Value):
    """What happens to a machine that hangs."""

    model: Literal["i6300esb", "ib700"] = "i6300esb"
    action: Literal["debug", "none", "pause", "poweroff", "reset", "shutdown"] = "none"


class PciDevice(Value):
    """A PCI device of the node, by its address or by a mapping of the cluster."""

    device: Annotated[str, StringConstraints(pattern=r"^hostpci([0-9]|1[0-5])$")]
    id: Line | None = None
    mapping: Line | None = None
    mdev: Line | None = None
    pcie: bool = False
    rombar: bool = True
    rom_file: Line | None = None
    primary_gpu: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.id is None) == (self.mapping is None):
            raise ValueError("name the device by exactly one of `id` and `mapping`")
        return self


class UsbDevice(Value):
    """A USB device of the node, by `vendor:product` or `bus-port`, or by a mapping of the cluster."""

    host: Line | None = None
    mapping: Line | None = None
    usb3: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.host is None) == (self.mapping is None):
            raise ValueError("name the device by exactly one of `host` and `mapping`")
        return self


class Device(Value):
    """A device file of the node that a container may use."""

    path: Annotated[str, StringConstraints(pattern=r"^/dev/\S+$")]
    mode: Annotated[str, StringConstraints(pattern=r"^0[0-7]{3}$")] | None = None
    uid: Annotated[int, Field(ge=0)] | None = None
    gid: Annotated[int, Field(ge=0)] | None = None
    deny_write: bool = False
