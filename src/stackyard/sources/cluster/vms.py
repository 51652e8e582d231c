"""The VMs of a Talos cluster in the model that all sources share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import DeclaredFile, Desired, Download, Vm
from stackyard.desired.disks import Cdrom, Disk, EfiDisk, Tpm
from stackyard.desired.guest import Agent, CloudInit, Dns, Startup, Verify
from stackyard.desired.hardware import Cpu, Memory
from stackyard.desired.nic import Nic
from stackyard.sources.cluster.image_names import name_file, name_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.cluster.model import Cluster, ClusterNode, NodeVm

__all__ = ["build_desired", "list_addresses"]

# The names of the resources are those that users of the original have in their states.
_VM = "proxmox_virtual_environment_vm.talos_node"
_IMAGE = "proxmox_virtual_environment_download_file.talos_iso"
_ISO_DRIVE = "ide2"
_CLOUD_INIT_DRIVE = "ide0"
_DISK = "scsi0"


def build_desired(cluster: Cluster) -> Desired:
    """Return the VMs and images of a cluster; nothing for machines of their own."""
    images = {download.key: download for download in _list_images(cluster)}
    guests = tuple(_build_vm(cluster, node, node.vm) for node in cluster.nodes if node.vm is not None)
    return Desired(vms=guests, files=tuple(images.values()))


def list_addresses(cluster: Cluster) -> dict[str, str]:
    """Return the address of the resource of each VM and image, by its key in the model."""
    found = {node.name: f'{_VM}["{node.name}"]' for node in cluster.nodes if node.vm is not None}
    images = (name_image(cluster, node) for node in cluster.nodes if node.vm is not None)
    return {**found, **{key: f'{_IMAGE}["{key}"]' for key in images}}


def _list_images(cluster: Cluster) -> Iterator[Download]:
    for node in cluster.nodes:
        if node.vm is None or cluster.proxmox is None:
            continue
        yield Download(
            kind="download",
            key=name_image(cluster, node),
            node=node.vm.proxmox_node,
            datastore=cluster.proxmox.iso_storage,
            content="import" if node.image.is_disk else "iso",
            url=node.image.url,
            file_name=name_file(cluster, node),
        )


def _build_vm(cluster: Cluster, node: ClusterNode, vm: NodeVm) -> Vm:
    hardware, network = cluster.hardware, cluster.network
    disks = _disk_storage(cluster)
    image = DeclaredFile(file=name_image(cluster, node))
    is_uefi = hardware.bios == "ovmf"
    return Vm(
        key=node.name,
        name=node.name,
        node=vm.proxmox_node,
        vm_id=vm.vm_id,
        tags=tuple(sorted({*hardware.tags, node.role})),
        bios="ovmf" if is_uefi else "seabios",
        machine=hardware.machine,
        cpu=Cpu(cores=vm.size.cores, sockets=vm.size.sockets, type=hardware.cpu_type, numa=hardware.numa),
        memory=Memory(dedicated_mib=vm.size.memory, floating_mib=hardware.balloon),
        disks=(_build_disk(cluster, node, vm),),
        efi_disk=EfiDisk(datastore=disks) if is_uefi else None,
        tpm=Tpm(datastore=disks) if vm.has_tpm else None,
        cdrom=None if node.image.is_disk else Cdrom(file=image, interface=_ISO_DRIVE),
        boot_order=(_DISK,) if node.image.is_disk else (_DISK, _ISO_DRIVE),
        nics=(_build_nic(cluster, node),),
        dns=Dns(servers=tuple(str(one) for one in network.dns_servers)),
        cloud_init=CloudInit(datastore=disks, interface=_CLOUD_INIT_DRIVE),
        agent=Agent(enabled=vm.has_agent),
        startup=Startup(order=vm.startup_order, up_delay_s=vm.startup_delay, down_delay_s=vm.shutdown_delay),
        verify=Verify(agent=vm.has_agent, address=vm.has_agent),
    )


def _build_disk(cluster: Cluster, node: ClusterNode, vm: NodeVm) -> Disk:
    hardware = cluster.hardware
    return Disk(
        interface=_DISK,
        datastore=_disk_storage(cluster),
        size_gib=vm.size.disk_size,
        file=DeclaredFile(file=name_image(cluster, node)) if node.image.is_disk else None,
        backup=hardware.disk_backup,
        replicate=hardware.disk_replicate,
    )


def _build_nic(cluster: Cluster, node: ClusterNode) -> Nic:
    network = cluster.network
    return Nic(
        bridge=cluster.hardware.network_bridge,
        mac=node.mac_addr,
        vlan=network.nic_vlan_tag,
        mtu=node.mtu,
        queues=cluster.hardware.net_queues,
        ipv4=f"{node.address}/{network.node_cidr.prefixlen}",
        gateway4=str(network.gateway),
    )


def _disk_storage(cluster: Cluster) -> str:
    return "local-lvm" if cluster.proxmox is None else cluster.proxmox.disk_storage
