"""What each field of a cluster is for, in one line: for `cluster explain`, the schemas and the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLUSTER_WORDS", "NODE_WORDS", "PART_WORDS", "SECRET_WORDS"]

CLUSTER_WORDS: Mapping[str, str] = {
    "cluster_name": "The name of the cluster, of its state and of its target; else that of the folder below "
    "`clusters/`, else `kubernetes`.",
    "nodes_count": "How many nodes there are; `stackyard cluster name-nodes` writes those without a name.",
    "node_cidr": "The network of the nodes.",
    "node_default_gateway": "The gateway of the nodes; the first address of their network when absent.",
    "node_dns_servers": "Name servers of the nodes.",
    "node_ntp_servers": "Time servers of the nodes.",
    "node_vlan_tag": "The VLAN of the nodes. It is tagged once: see `proxmox_vlan_mode`.",
    "proxmox_vlan_mode": "Who tags the VLAN: true, the network card of the VM; false, Talos.",
    "cluster_api_addr": "The virtual address of the Kubernetes API: free, and in the network of the nodes.",
    "cluster_api_tls_sans": "More names in the certificate of the Kubernetes API.",
    "cluster_pod_cidr": "The network of pods.",
    "cluster_svc_cidr": "The network of services.",
    "cluster_gateway_addr": "The address of the internal gateway.",
    "cluster_dns_gateway_addr": "The address of the DNS gateway.",
    "cloudflare_gateway_addr": "The address of the external gateway.",
    "cloudflare_domain": "The domain of the cluster. With `tfstate_password`, the state is at "
    "https://tfstate.DOMAIN/states/proxmox.",
    "cilium_bgp_router_addr": "The BGP router: with one, gateways may be outside of `node_cidr`.",
    "cilium_lb_pool_cidr": "Addresses for services of type LoadBalancer.",
    "repository_branch": "The branch that Flux follows.",
    "repository_visibility": "Whether Flux needs a key to read the repository.",
    "talos_version": "The version of Talos, without `v`: of the image, the installer and the tools.",
    "kubernetes_version": "The version of Kubernetes, without `v`.",
    "talos_factory": "The Image Factory: name a mirror if the public one cannot be reached.",
    "talos_image": "What VMs boot first: an ISO, or a disk image.",
    "talos_arch": "The architecture of the nodes.",
    "schematic_id": "The schematic of nodes that have none of their own.",
    "talos_schematic": "The content of that schematic; its id is computed, and compared with `schematic_id`.",
    "registry_mirrors": "Mirrors by the registry that they stand for, in their order: "
    "`docker.io: [https://mirror.example.com]`; `*` is every other registry.",
    "node_labels": "Labels of all nodes in Kubernetes.",
    "proxmox_api_url": "The API of Proxmox. Without it, the nodes are bare metal, and no VM is made.",
    "proxmox_node": "The Proxmox node of VMs that name no other.",
    "target_node": "Another name for `proxmox_node`.",
    "proxmox_nodes": "Proxmox nodes to spread the VMs over, in the order of the file, roles evenly; a node "
    "that is added at the end moves no other.",
    "proxmox_insecure": "Do not check the certificate of Proxmox, as where no authority signed it.",
    "proxmox_iso_storage": "The storage for images.",
    "proxmox_disk_storage": "The storage for disks.",
    "proxmox_vm_defaults": "The size of all VMs, where neither node nor role says it.",
    "proxmox_vm_controller_defaults": "The size of controllers, where the node does not say it.",
    "proxmox_vm_worker_defaults": "The size of workers, where the node does not say it.",
    "proxmox_vm_advanced": "What all VMs have in common: firmware, processor, disks, network card, tags.",
    "tfstate_address": "Where the state is, at a server of the HTTP backend; the store of stackyard "
    "when absent.",
}
NODE_WORDS: Mapping[str, str] = {
    "name": "The host name, which is also the name of the VM.",
    "address": "The static address, in the network of the nodes.",
    "controller": "Whether it is a control plane node; their number has to be odd.",
    "disk": "The install disk: a path, or the serial number of a disk.",
    "mac_addr": "The MAC address of its network card.",
    "schematic_id": "The schematic of its image; that of the cluster when absent.",
    "schematic": "The content of its schematic; its id is computed, and compared with `schematic_id`.",
    "mtu": "The MTU of its network card.",
    "secureboot": "Whether it boots the variant for secure boot.",
    "encrypt_disk": "Whether its disk is encrypted with the TPM, which its VM then has.",
    "kernel_modules": "Kernel modules that Talos loads.",
    "node_labels": "Its labels in Kubernetes; they are added to those of the cluster, and win.",
    "proxmox_node": "The Proxmox node of its VM; that of the cluster, or one of the spread, when absent.",
    "target_node": "Another name for `proxmox_node`.",
    "vm_id": "The number of its VM; Proxmox chooses one when absent. Give it to all nodes, or to none.",
    "vm_cores": "Cores of each socket.",
    "vm_sockets": "Sockets.",
    "vm_memory": "Memory in MiB.",
    "vm_disk_size": "The disk in GB.",
    "vm_startup_order": "When it starts with its host; its place among the nodes plus 3 when absent.",
    "vm_startup_delay": "Seconds until the next one starts; 15 when absent.",
    "vm_shutdown_delay": "Seconds that it has to shut down; 60 when absent.",
}
# The parts of fields that are mappings, by their own names.
PART_WORDS: Mapping[str, str] = {
    "cores": "Cores of each socket.",
    "sockets": "Sockets.",
    "memory": "Memory in MiB.",
    "disk_size": "The disk in GB.",
    "bios": "The firmware; secure boot and encryption need ovmf.",
    "machine": "The type of the machine; secure boot needs q35.",
    "cpu_type": "The type of the processor: at least x86-64-v2, so neither kvm64 nor qemu64.",
    "scsi_hw": "The SCSI controller.",
    "balloon": "The least memory in MiB while the host is short of it; 0 turns the balloon off.",
    "numa": "Whether the VM has NUMA.",
    "qemu_agent": "Whether the guest agent is on; it needs the extension in the image.",
    "net_queues": "Queues of the network card.",
    "disk_discard": "Whether the storage frees what the VM no longer uses.",
    "disk_ssd": "Whether the disk is shown as an SSD.",
    "tags": "Tags of the VMs; the role is added.",
    "network_bridge": "The bridge of the network card.",
    "ostype": "The type of system that Proxmox expects.",
    "disk_backup": "Whether backups have the disk.",
    "disk_replicate": "Whether the disk is replicated.",
    "extensions": "Official system extensions; their order counts.",
    "extra_kernel_args": "Arguments of the kernel; their order counts.",
    "meta": "Initial values of META: `key` and `value`.",
    "overlay": "An overlay, for boards that need one: `image`, `name` and `options`.",
    "bootloader": "The boot loader, where it is not the usual one.",
    "secureboot": "`enroll_keys` and `include_well_known_certificates`.",
    "disk_image": "`sector_size` of a disk image: 512 or 4096.",
    "embedded_machine_configuration": "A machine configuration inside of the image.",
    "owner": "The owner, in an Image Factory that has owners.",
}
SECRET_WORDS: Mapping[str, str] = {
    "proxmox_api_token_id": "The API token of Proxmox: USER@REALM!NAME.",
    "proxmox_api_token_secret": "The secret of that token.",
    "tfstate_username": "The user name at the state service; `terraform` when absent.",
    "tfstate_password": "The password at the state service.",
    "state_encryption_passphrase": "Encrypts the state before it leaves this machine.",
    "state_encryption_passphrase_previous": "The passphrase before a rotation: it only decrypts.",
    "cloudflare_token": "The API token of Cloudflare, for DNS and certificates.",
    "cf_account_id": "The account at Cloudflare.",
    "git_token": "The token with which Flux reads its repository over https, on any forge.",
    "github_token": "The same for GitHub.",
    "truenas_api_key": "The API key of TrueNAS: for datasets, and as `kube-system/truenas-api`.",
}
