"""VMs that Talos can boot: secure boot, encryption, processors, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.resolve import choose_cluster_values, choose_size, is_virtual

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.cluster.resolve import Choice

__all__ = ["check_hardware"]

NO_UEFI = Kind(
    code="E-CLUSTER-SECUREBOOT",
    summary="Secure boot is not possible on such a VM",
    remedy="Use `bios: ovmf` and `machine: q35`, or turn `secureboot` off for the node.",
)
NO_TPM = Kind(
    code="E-CLUSTER-ENCRYPTION",
    summary="Disk encryption needs a TPM, which such a VM cannot have",
    remedy="Use `bios: ovmf`: the VM then gets a TPM; or turn `encrypt_disk` off for the node.",
)
WEAK_ENCRYPTION = Kind(
    code="W-CLUSTER-ENCRYPTION",
    summary="Encryption protects little without secure boot",
    remedy="Turn `secureboot` on for the node: the TPM gives its key to any system that boots otherwise.",
    severity=Severity.WARNING,
)
OLD_CPU = Kind(
    code="E-CLUSTER-CPU",
    summary="Talos does not boot on this type of processor",
    remedy="Use `cpu_type: host`, or x86-64-v2-AES where VMs move between different hosts.",
)
OTHER_ARCH = Kind(
    code="E-CLUSTER-ARCH",
    summary="The VMs of Proxmox VE do not boot an image for another architecture",
    remedy="Remove `talos_arch`, or set it to amd64. Machines of their own may be arm64.",
)
BALLOON = Kind(
    code="E-CLUSTER-BALLOON",
    summary="The balloon is larger than the memory",
    remedy="Use `balloon: 0`, which turns it off, or a value below the memory of every VM.",
)
LITTLE_MEMORY = Kind(
    code="W-CLUSTER-MEMORY",
    summary="A controller has little memory",
    remedy="Give it at least 2048 MiB: etcd and the API server are ended when memory is short.",
    severity=Severity.WARNING,
)
OTHER_DISK = Kind(
    code="W-CLUSTER-DISK",
    summary="The VM of a node has no such disk",
    remedy="Use /dev/sda: the disk of a VM is on its SCSI controller.",
    severity=Severity.WARNING,
)
# Below x86-64-v2, which Talos needs since 1.4: the kernel stops, and the VM boots again and again.
_OLD_CPUS = frozenset(
    "486 athlon Conroe core2duo coreduo kvm32 kvm64 Opteron_G1 Opteron_G2 Opteron_G3 Penryn pentium pentium2 "
    "pentium3 phenom qemu32 qemu64".split()
)
_LEAST_MEMORY = 2048
_OTHER_DISKS = ("/dev/vd", "/dev/nvme", "/dev/hd", "/dev/mmcblk", "/dev/xvd")


def check_hardware(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse VMs that would not boot; machines of their own are their owner's."""
    for index, node in enumerate(read.nodes):
        if node.encrypt_disk and not node.secureboot:
            where = read.places.place("nodes", index, "encrypt_disk")
            found.add(WEAK_ENCRYPTION, f"`{read.places.name('nodes', index)}` has no secure boot.", where)
    if not is_virtual(read.fields):
        return
    if read.fields.talos_arch == "arm64":
        where, name = read.places.place("talos_arch"), read.places.name("talos_arch")
        found.add(OTHER_ARCH, f"`{name}` is arm64, and the VMs have processors of x86-64.", where)
    chosen = choose_cluster_values(read)
    _check_boot(read, found, chosen)
    cpu = chosen["proxmox_vm_advanced.cpu_type"]
    if cpu.value in _OLD_CPUS and cpu.keys:
        detail = f"`{read.places.name(*cpu.keys)}` is {cpu.value}, which lacks instructions of x86-64-v2."
        found.add(OLD_CPU, detail, read.places.place(*cpu.keys))
    _check_memory(read, found, chosen["proxmox_vm_advanced.balloon"])


def _check_boot(read: ClusterInput, found: Diagnostics, chosen: dict[str, Choice]) -> None:
    bios, machine = (chosen[f"proxmox_vm_advanced.{name}"].value for name in ("bios", "machine"))
    for index, node in enumerate(read.nodes):
        name = read.places.name("nodes", index)
        if (node.disk or "").startswith(_OTHER_DISKS):
            where = read.places.place("nodes", index, "disk")
            found.add(OTHER_DISK, f"`{name}` is to be installed on {node.disk}.", where)
        if node.secureboot and (bios, machine) != ("ovmf", "q35"):
            where = read.places.place("nodes", index, "secureboot")
            found.add(NO_UEFI, f"`{name}` has secure boot, and VMs have {bios} on {machine}.", where)
        if node.encrypt_disk and bios != "ovmf":
            where = read.places.place("nodes", index, "encrypt_disk")
            found.add(NO_TPM, f"`{name}` is encrypted, and VMs have {bios}.", where)


def _check_memory(read: ClusterInput, found: Diagnostics, balloon: Choice) -> None:
    for index, node in enumerate(read.nodes):
        role = "controller" if node.controller else "worker"
        memory = choose_size(read.fields, role, node, index)["memory"]
        keys = memory.keys or ("nodes", index)
        name = read.places.name("nodes", index)
        if balloon.value > memory.value and balloon.keys:
            detail = f"`{name}` has {memory.value} MiB, and a balloon of {balloon.value} MiB."
            found.add(BALLOON, detail, read.places.place(*balloon.keys), also=(read.places.place(*keys),))
        if node.controller and memory.value < _LEAST_MEMORY:
            found.add(LITTLE_MEMORY, f"`{name}` has {memory.value} MiB.", read.places.place(*keys))
