"""A Talos cluster with every default resolved: node before role before global before built-in."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ipaddress import IPv4Address, IPv4Network
    from pathlib import Path

    from stackyard.base.errors import Location
    from stackyard.talosapi.schematic import Schematic

__all__ = [
    "Cluster",
    "ClusterNetwork",
    "ClusterNode",
    "NodeVm",
    "ProxmoxAccess",
    "StateAddress",
    "TalosImage",
    "VmHardware",
    "VmSize",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSize:
    """How large a VM is.

    Attributes:
        cores: Cores of each socket.
        sockets: Sockets.
        memory: Memory in MiB.
        disk_size: The disk in GB.
    """

    cores: int
    sockets: int
    memory: int
    disk_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VmHardware:
    """What the VMs of a cluster have in common; the names are those of `proxmox_vm_advanced`."""

    bios: str = "ovmf"
    machine: str = "q35"
    cpu_type: str = "host"
    scsi_hw: str = "virtio-scsi-pci"
    balloon: int = 0
    numa: bool = True
    qemu_agent: bool = True
    net_queues: int = 4
    disk_discard: bool = True
    disk_ssd: bool = True
    tags: tuple[str, ...] = ("kubernetes", "linux", "talos")
    network_bridge: str = "vmbr0"
    ostype: str = "l26"
    disk_backup: bool = False
    disk_replicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosImage:
    """The image that a node boots, and the installer that belongs to it: one version for both.

    Attributes:
        schematic_id: The schematic of the Image Factory.
        version: The version of Talos, without `v`.
        platform: `nocloud` on Proxmox, `metal` elsewhere.
        arch: `amd64` or `arm64`.
        is_secureboot: Whether it is the variant for secure boot.
        is_disk: Whether it is a disk image, and not an ISO.
        factory: The address of the Image Factory, without a slash at its end.
    """

    schematic_id: str
    version: str
    platform: str = "nocloud"
    arch: str = "amd64"
    is_secureboot: bool = False
    is_disk: bool = False
    factory: str = "https://factory.talos.dev"

    @property
    def variant(self) -> str:
        """What its files are called: `nocloud-amd64-secureboot`."""
        return f"{self.platform}-{self.arch}{'-secureboot' if self.is_secureboot else ''}"

    @property
    def suffix(self) -> str:
        """The ending of its file.

        Proxmox imports a qcow2 as it is. It decompresses only what it keeps as an ISO, and never xz, which
        is what a machine of its own is given.
        """
        if not self.is_disk:
            return "iso"
        return "qcow2" if self.platform == "nocloud" else "raw.xz"

    @property
    def url(self) -> str:
        """Where it is downloaded."""
        return f"{self.factory}/image/{self.schematic_id}/v{self.version}/{self.variant}.{self.suffix}"

    @property
    def file_name(self) -> str:
        """Its name on a storage of Proxmox; a new version is a new file."""
        unusual = (
            self.platform if self.platform != "nocloud" else "",
            self.arch if self.arch != "amd64" else "",
            "secureboot" if self.is_secureboot else "",
        )
        more = "".join(f"-{word}" for word in unusual if word)
        return f"talos-v{self.version}-{self.schematic_id[:12]}{more}.{self.suffix}"

    @property
    def installer(self) -> str:
        """The image that `machine.install.image` names."""
        host = self.factory.partition("://")[2] or self.factory
        secure = "-secureboot" if self.is_secureboot else ""
        return f"{host}/{self.platform}-installer{secure}/{self.schematic_id}:v{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVm:
    """The VM of a node.

    Attributes:
        proxmox_node: The Proxmox node that it is on.
        vm_id: Its number; Proxmox chooses one when absent.
        size: How large it is.
        startup_order: When it starts with its host.
        startup_delay: Seconds until the next one starts.
        shutdown_delay: Seconds that it has to shut down.
        has_tpm: Whether it has a TPM, which disk encryption needs.
        has_agent: Whether its guest agent is waited for: the setting is on, and its image may have it.
        vm_id_where: Where the input gives the number.
    """

    proxmox_node: str
    vm_id: int | None
    size: VmSize
    startup_order: int
    startup_delay: int = 15
    shutdown_delay: int = 60
    has_tpm: bool = False
    has_agent: bool = True
    vm_id_where: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node.

    Attributes:
        name: Its host name.
        address: Its static address.
        is_controller: Whether it is a control plane node.
        disk: The install disk: a path, or the serial number of a disk.
        mac_addr: The MAC address of its card, in lower case.
        image: What it boots.
        mtu: The MTU, where it is not the usual one.
        is_encrypted: Whether its disk is encrypted with the TPM.
        kernel_modules: Modules that Talos loads.
        labels: Its labels in Kubernetes, those of the cluster among them.
        vm: Its VM; None for a machine of its own.
        where: Where the input describes it.
    """

    name: str
    address: IPv4Address
    is_controller: bool
    disk: str
    mac_addr: str
    image: TalosImage
    mtu: int | None = None
    is_encrypted: bool = False
    kernel_modules: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    vm: NodeVm | None = None
    where: Location | None = field(default=None, compare=False, repr=False)

    @property
    def role(self) -> str:
        """The word for its role: `controller` or `worker`."""
        return "controller" if self.is_controller else "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNetwork:
    """The networks of a cluster.

    Attributes:
        node_cidr: The network of the nodes.
        gateway: Its gateway.
        vlan_tag: The VLAN of the nodes, where they have one.
        is_tagged_by_proxmox: Whether the card of the VM has the tag, so that Talos sees none; otherwise
            Talos makes the VLAN interface and the card has no tag. Never both.
        dns_servers: Name servers.
        ntp_servers: Time servers.
        api_addr: The address of the Kubernetes API, a virtual one.
        api_tls_sans: More names in its certificate.
        pod_cidr: The network of pods.
        svc_cidr: The network of services.
    """

    node_cidr: IPv4Network
    gateway: IPv4Address
    vlan_tag: int | None
    is_tagged_by_proxmox: bool
    dns_servers: tuple[IPv4Address, ...]
    ntp_servers: tuple[str, ...]
    api_addr: IPv4Address
    api_tls_sans: tuple[str, ...]
    pod_cidr: IPv4Network
    svc_cidr: IPv4Network

    @property
    def nic_vlan_tag(self) -> int | None:
        """The tag on the card of a VM."""
        return self.vlan_tag if self.is_tagged_by_proxmox else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxmoxAccess:
    """The Proxmox cluster of the VMs.

    Attributes:
        api_url: Its API, as the user wrote it.
        node: The node for what names no other.
        is_insecure: Whether its certificate is not checked.
        iso_storage: The storage for images.
        disk_storage: The storage for disks.
    """

    api_url: str
    node: str
    is_insecure: bool = False
    iso_storage: str = "local"
    disk_storage: str = "local-lvm"

    @property
    def endpoint(self) -> str:
        """The address of the API without its path: what providers take."""
        return self.api_url.rstrip("/").removesuffix("/api2/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAddress:
    """A state behind the HTTP protocol that is not in our own store.

    Attributes:
        url: The address of the state.
        lock_url: The address of its lock.
    """

    url: str
    lock_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Talos cluster; its representation shows no secret.

    Attributes:
        name: Its name.
        folder: The folder with its files.
        talos_version: The version of Talos, without `v`: that of the image, the installer and the tools.
        kubernetes_version: The version of Kubernetes, without `v`.
        network: Its networks.
        nodes: Its nodes, in the order of the file.
        registry_mirrors: Mirrors of container registries, by the registry that they stand for.
        proxmox: The Proxmox cluster of the VMs; None where every node is a machine of its own.
        hardware: What its VMs have in common.
        vm_defaults: The sizes that the input says for all VMs, resolved with the built-in ones.
        state: Where its state is; None for our own store.
        schematics: The schematics whose content is known, by their id.
        values: Every field of the input with defaults, by the names of the input, for templates; no secret.
        secrets: The secret fields that the input has, by their names in it.
        files: The files that it was read from.
        are_secrets_in_git: Whether its secrets are in a file that git may hold: `cluster.sops.yaml`.
    """

    name: str
    folder: Path
    talos_version: str
    kubernetes_version: str
    network: ClusterNetwork
    nodes: tuple[ClusterNode, ...]
    registry_mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    proxmox: ProxmoxAccess | None = None
    hardware: VmHardware = field(default_factory=VmHardware)
    vm_defaults: VmSize
    state: StateAddress | None = None
    schematics: Mapping[str, Schematic] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    secrets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    files: tuple[Path, ...] = ()
    are_secrets_in_git: bool = False

    @property
    def infrastructure(self) -> Path:
        """The folder that `cluster configure` writes."""
        return self.folder / "infrastructure"

    @property
    def controllers(self) -> tuple[ClusterNode, ...]:
        """The control plane nodes."""
        return tuple(node for node in self.nodes if node.is_controller)

    @property
    def workers(self) -> tuple[ClusterNode, ...]:
        """The other nodes."""
        return tuple(node for node in self.nodes if not node.is_controller)
