"""The resolved cluster, from input in which nothing is wrong."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.agent import may_have_agent
from stackyard.sources.cluster.model import (
    Cluster,
    ClusterNetwork,
    ClusterNode,
    NodeVm,
    ProxmoxAccess,
    StateAddress,
    TalosImage,
    VmHardware,
    VmSize,
)
from stackyard.sources.cluster.resolve import (
    choose_cluster_values,
    choose_node_values,
    choose_schematic,
    choose_size,
    is_virtual,
)
from stackyard.sources.cluster.values import list_values
from stackyard.talosapi.schematic import WELL_KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.cluster.fields import ClusterFields
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.cluster.resolve import Choice
    from stackyard.talosapi.schematic import Schematic

__all__ = ["build_cluster", "find_state_address"]

_HARDWARE = "proxmox_vm_advanced."
_USER_NAME = "terraform"


def build_cluster(read: ClusterInput, name: str) -> Cluster:
    """Return the cluster; the input has to be valid."""
    chosen = {key: choice.value for key, choice in choose_cluster_values(read).items()}
    nodes = choose_node_values(read)
    fields = read.fields
    hardware = {key.removeprefix(_HARDWARE): chosen[key] for key in chosen if key.startswith(_HARDWARE)}
    common = {key: choice.value for key, choice in choose_size(fields, "", None, 0).items()}
    return Cluster(
        name=name,
        folder=read.folder,
        talos_version=chosen["talos_version"],
        kubernetes_version=chosen["kubernetes_version"],
        network=_network(fields, chosen),
        nodes=tuple(_node(read, index, one, chosen) for index, one in enumerate(nodes)),
        registry_mirrors=MappingProxyType(dict(chosen["registry_mirrors"])),
        proxmox=_proxmox(fields, chosen, nodes),
        hardware=VmHardware(**hardware),
        vm_defaults=VmSize(**common),
        state=find_state_address(read),
        schematics=MappingProxyType(_list_schematics(read)),
        values=MappingProxyType(list_values(read, chosen, nodes)),
        secrets=_add_user_name(read.secrets),
        files=read.files,
        are_secrets_in_git=read.are_secrets_encrypted,
    )


def _list_schematics(read: ClusterInput) -> dict[str, Schematic]:
    """Return the schematics of the nodes whose content is known: from the input, or by a well-known id."""
    chosen = [choose_schematic(read, index) for index in range(len(read.nodes))]
    known = ((choice.value, content or WELL_KNOWN.get(choice.value)) for choice, content in chosen)
    return {found: content for found, content in known if content is not None}


def _network(fields: ClusterFields, chosen: Mapping[str, Any]) -> ClusterNetwork:
    if fields.node_cidr is None or fields.cluster_api_addr is None:
        raise ValueError("the input is not valid")
    return ClusterNetwork(
        node_cidr=fields.node_cidr,
        gateway=chosen["node_default_gateway"],
        vlan_tag=fields.node_vlan_tag,
        is_tagged_by_proxmox=chosen["proxmox_vlan_mode"],
        dns_servers=tuple(map(IPv4Address, chosen["node_dns_servers"])),
        ntp_servers=tuple(chosen["node_ntp_servers"]),
        api_addr=fields.cluster_api_addr,
        api_tls_sans=tuple(chosen["cluster_api_tls_sans"]),
        pod_cidr=IPv4Network(chosen["cluster_pod_cidr"]),
        svc_cidr=IPv4Network(chosen["cluster_svc_cidr"]),
    )


def _node(
    read: ClusterInput, index: int, choices: Mapping[str, Choice], chosen: Mapping[str, Any]
) -> ClusterNode:
    one = {name: choice.value for name, choice in choices.items()}
    image = TalosImage(
        schematic_id=one["schematic_id"],
        version=chosen["talos_version"],
        platform="nocloud" if is_virtual(read.fields) else "metal",
        arch=chosen["talos_arch"],
        is_secureboot=one["secureboot"],
        is_disk=chosen["talos_image"] == "disk",
        factory=chosen["talos_factory"].rstrip("/"),
    )
    return ClusterNode(
        name=one["name"],
        address=one["address"],
        is_controller=one["controller"],
        disk=one["disk"],
        mac_addr=one["mac_addr"],
        image=image,
        mtu=one["mtu"],
        is_encrypted=one["encrypt_disk"],
        kernel_modules=tuple(one["kernel_modules"]),
        labels=MappingProxyType(dict(one["node_labels"])),
        vm=_vm(read, index, one) if is_virtual(read.fields) else None,
        where=read.places.place("nodes", index),
    )


def _vm(read: ClusterInput, index: int, one: Mapping[str, Any]) -> NodeVm:
    size = VmSize(
        cores=one["vm_cores"],
        sockets=one["vm_sockets"],
        memory=one["vm_memory"],
        disk_size=one["vm_disk_size"],
    )
    return NodeVm(
        proxmox_node=one["proxmox_node"],
        vm_id=one["vm_id"],
        size=size,
        startup_order=one["vm_startup_order"],
        startup_delay=one["vm_startup_delay"],
        shutdown_delay=one["vm_shutdown_delay"],
        has_tpm=one["encrypt_disk"],
        has_agent=may_have_agent(read, index),
        vm_id_where=None if one["vm_id"] is None else read.places.place("nodes", index, "vm_id"),
    )


def _proxmox(
    fields: ClusterFields, chosen: Mapping[str, Any], nodes: list[dict[str, Choice]]
) -> ProxmoxAccess | None:
    if fields.proxmox_api_url is None:
        return None
    default = fields.proxmox_node or fields.target_node or next(iter(fields.proxmox_nodes or ()), None)
    return ProxmoxAccess(
        api_url=fields.proxmox_api_url,
        node=default or nodes[0]["proxmox_node"].value,
        is_insecure=chosen["proxmox_insecure"],
        iso_storage=chosen["proxmox_iso_storage"],
        disk_storage=chosen["proxmox_disk_storage"],
    )


def _add_user_name(secrets: Mapping[str, str]) -> Mapping[str, str]:
    """Return secrets in which a password of the state service has a user name: without one, none is sent."""
    if "tfstate_password" not in secrets:
        return secrets
    return MappingProxyType({"tfstate_username": _USER_NAME, **secrets})


def find_state_address(read: ClusterInput) -> StateAddress | None:
    """Return where the state is, where that is not our own store.

    A domain together with credentials means the state service of that domain, as such clusters have it.
    """
    url = read.fields.tfstate_address
    if url is None and read.fields.cloudflare_domain and "tfstate_password" in read.secret_names:
        url = f"https://tfstate.{read.fields.cloudflare_domain}/states/proxmox"
    if url is None:
        return None
    url = url.rstrip("/")
    return StateAddress(url=url, lock_url=f"{url}/lock")
