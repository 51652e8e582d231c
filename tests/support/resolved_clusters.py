"""Resolved clusters, made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from stackyard.sources.cluster.model import (
    Cluster,
    ClusterNetwork,
    ClusterNode,
    NodeVm,
    ProxmoxAccess,
    StateAddress,
    TalosImage,
    VmSize,
)

__all__ = ["SCHEMATIC", "SECRETS", "make_cluster", "make_node"]

SCHEMATIC = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
CONTROLLER = VmSize(cores=4, sockets=1, memory=8192, disk_size=64)
WORKER = VmSize(cores=8, sockets=1, memory=16384, disk_size=256)
NETWORK = ClusterNetwork(
    node_cidr=IPv4Network("10.0.0.0/16"),
    gateway=IPv4Address("10.0.0.1"),
    vlan_tag=None,
    is_tagged_by_proxmox=False,
    dns_servers=(IPv4Address("1.1.1.1"), IPv4Address("1.0.0.1")),
    ntp_servers=("162.159.200.1",),
    api_addr=IPv4Address("10.0.255.1"),
    api_tls_sans=(),
    pod_cidr=IPv4Network("10.42.0.0/16"),
    svc_cidr=IPv4Network("10.43.0.0/16"),
)
SECRETS = {
    "tfstate_username": "terraform",
    "tfstate_password": 'hunter-2-${x} "quoted"',
    "proxmox_api_token_id": "talos@pve!home",
    "proxmox_api_token_secret": "3f0c5b0e-secret",
    "cloudflare_token": "cf-token-1",
}
STATE = StateAddress(
    url="https://tfstate.example.com/states/proxmox",
    lock_url="https://tfstate.example.com/states/proxmox/lock",
)


def make_node(index: int, *, host: str = "pve", is_controller: bool = True, **changes: Any) -> ClusterNode:
    """Return a node; `vm` may be a mapping with changes of its VM."""
    vm = NodeVm(
        proxmox_node=host,
        vm_id=100 + index,
        size=CONTROLLER if is_controller else WORKER,
        startup_order=index + 3,
    )
    changed_vm = changes.pop("vm", {})
    node = ClusterNode(
        name=f"k8s-{index}",
        address=IPv4Address("10.0.1.0") + index,
        is_controller=is_controller,
        disk="/dev/sda",
        mac_addr=f"bc:24:11:00:00:{index:02x}",
        image=TalosImage(schematic_id=SCHEMATIC, version="1.12.1"),
        vm=None if changed_vm is None else dataclasses.replace(vm, **changed_vm),
    )
    return dataclasses.replace(node, **changes)


def make_cluster(
    folder: Path,
    *,
    nodes: int | Sequence[ClusterNode] = 3,
    network: dict[str, Any] | None = None,
    **changes: Any,
) -> Cluster:
    """Return a cluster with some nodes; of a number of nodes, the first three are controllers."""
    if isinstance(nodes, int):
        nodes = [make_node(index + 1, is_controller=index < 3) for index in range(nodes)]
    cluster = Cluster(
        name="home",
        folder=folder,
        talos_version="1.12.1",
        kubernetes_version="1.35.0",
        network=dataclasses.replace(NETWORK, **(network or {})),
        nodes=tuple(nodes),
        proxmox=ProxmoxAccess(api_url="https://pve.example.com:8006/api2/json", node="pve"),
        vm_defaults=VmSize(cores=4, sockets=1, memory=8192, disk_size=128),
        state=STATE,
        values={"cloudflare_domain": "example.com", "proxmox_endpoint": "https://pve.example.com:8006"},
        secrets=SECRETS,
    )
    return dataclasses.replace(cluster, **changes)
