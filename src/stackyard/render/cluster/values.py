"""The values that templates may use, by the names of the input."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.image_names import name_file, name_image, name_image_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.cluster.model import Cluster, ClusterNode, NodeVm

__all__ = ["NOT_ENCRYPTED", "collect_secrets", "collect_values", "describe_previous"]

_STATE_SECRETS = ("cf_account_id", "tfstate_username", "tfstate_password")
_USERNAME = "terraform"
_PROXMOX_SECRETS = ("proxmox_api_token_id", "proxmox_api_token_secret")
_PASSPHRASE = "state_encryption_passphrase"  # noqa: S105 - the name of a field
# In place of the previous passphrase: the state is not encrypted yet.
NOT_ENCRYPTED = "none"
_PREVIOUS_PASSPHRASE = "state_encryption_passphrase_previous"  # noqa: S105 - the name of a field


def collect_values(cluster: Cluster, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return what every template may use; no secret is in it.

    Fields that the input does not have and that have no default are not there, so that `is defined` works.

    Args:
        cluster: The cluster.
        checksums: The SHA-256 of images that are pinned, by their file name on the usual Proxmox node.
    """
    network = cluster.network
    found: dict[str, Any] = {
        **cluster.values,
        "cluster_name": cluster.name,
        "infrastructure_enabled": cluster.proxmox is not None,
        "talos_version": cluster.talos_version,
        "kubernetes_version": cluster.kubernetes_version,
        "node_cidr": str(network.node_cidr),
        "node_default_gateway": str(network.gateway),
        "node_vlan_tag": network.vlan_tag,
        "node_dns_servers": [str(server) for server in network.dns_servers],
        "node_ntp_servers": list(network.ntp_servers),
        "cluster_api_addr": str(network.api_addr),
        "cluster_pod_cidr": str(network.pod_cidr),
        "cluster_svc_cidr": str(network.svc_cidr),
        "proxmox_vm_advanced": {**dataclasses.asdict(cluster.hardware), "tags": list(cluster.hardware.tags)},
        "proxmox_vm_defaults": dataclasses.asdict(cluster.vm_defaults),
        "nodes": [_describe_node(cluster, node) for node in cluster.nodes],
    }
    if cluster.proxmox is not None:
        found |= {
            "proxmox_api_url": cluster.proxmox.api_url,
            "proxmox_node": cluster.proxmox.node,
            "proxmox_insecure": cluster.proxmox.is_insecure,
            "proxmox_iso_storage": cluster.proxmox.iso_storage,
            "proxmox_disk_storage": cluster.proxmox.disk_storage,
        }
    kept = {name: value for name, value in found.items() if value is not None and name not in cluster.secrets}
    images = _list_images(cluster)
    return (
        kept | _derive(cluster) | {"talos_images": images, "image_checksums": _list_pins(cluster, checksums)}
    )


def _list_pins(cluster: Cluster, checksums: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each file on a storage whose image is pinned."""
    pinned = {
        name_file(cluster, node): checksums[name]
        for node in cluster.nodes
        if node.vm is not None and (name := name_image_file(cluster, node.image)) in checksums
    }
    return dict(sorted(pinned.items()))


def _derive(cluster: Cluster) -> dict[str, Any]:
    """Return the values that only our own templates have, and those that replace them."""
    network = cluster.network
    return {
        "state": cluster.state and {"url": cluster.state.url, "lock_url": cluster.state.lock_url},
        "state_is_encrypted": bool(cluster.secrets.get(_PASSPHRASE)),
        "state_previous": describe_previous(cluster),
        "state_key_alias": _name_key(cluster.secrets.get(_PASSPHRASE)),
        "state_previous_key_alias": _name_key(cluster.secrets.get(_PREVIOUS_PASSPHRASE)),
        "nic_vlan_tag": network.nic_vlan_tag,
        # Where Talos makes the VLAN interface, an address on the card itself would be in another network.
        "has_static_network": network.vlan_tag is None or network.is_tagged_by_proxmox,
        "vm_sizes": {
            "vm_defaults": dataclasses.asdict(cluster.vm_defaults),
            "vm_controller_defaults": _role_size(cluster, "proxmox_vm_controller_defaults"),
            "vm_worker_defaults": _role_size(cluster, "proxmox_vm_worker_defaults"),
        },
    }


def _role_size(cluster: Cluster, name: str) -> dict[str, int | None]:
    said: Mapping[str, int] = cluster.values.get(name) or {}
    return {key: said.get(key) for key in ("cores", "sockets", "memory", "disk_size")}


def _describe_node(cluster: Cluster, node: ClusterNode) -> dict[str, Any]:
    found = {
        "name": node.name,
        "address": str(node.address),
        "controller": node.is_controller,
        "disk": node.disk,
        "mac_addr": node.mac_addr,
        "schematic_id": node.image.schematic_id,
        "mtu": node.mtu,
        "secureboot": node.image.is_secureboot,
        "encrypt_disk": node.is_encrypted,
        "kernel_modules": list(node.kernel_modules),
        "installer": node.image.installer,
        "is_vm": node.vm is not None,
        **(_describe_vm(cluster, node, node.vm) if node.vm else {}),
    }
    return {name: value for name, value in found.items() if value is not None}


def _describe_vm(cluster: Cluster, node: ClusterNode, vm: NodeVm) -> dict[str, Any]:
    return {
        "vm_id": vm.vm_id,
        "vm_cores": vm.size.cores,
        "vm_sockets": vm.size.sockets,
        "vm_memory": vm.size.memory,
        "vm_disk_size": vm.size.disk_size,
        "vm_startup_order": vm.startup_order,
        "vm_startup_delay": vm.startup_delay,
        "vm_shutdown_delay": vm.shutdown_delay,
        "proxmox_node": vm.proxmox_node,
        "image": name_image(cluster, node),
        "tpm": vm.has_tpm,
        "agent": vm.has_agent,
    }


def _list_images(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return each image once for a Proxmox node, in the order of the keys."""
    found = {
        name_image(cluster, node): {
            "proxmox_node": node.vm.proxmox_node,
            "url": node.image.url,
            "file_name": name_file(cluster, node),
            "is_disk": node.image.is_disk,
        }
        for node in cluster.nodes
        if node.vm is not None
    }
    return dict(sorted(found.items()))


def collect_secrets(cluster: Cluster) -> dict[str, str]:
    """Return what `secrets.sops.yaml` holds: what the engine needs to reach the state and Proxmox VE."""
    names = [*_STATE_SECRETS, *(_PROXMOX_SECRETS if cluster.proxmox is not None else ())]
    if cluster.secrets.get(_PASSPHRASE):
        names.append(_PASSPHRASE)
    if describe_previous(cluster) == "passphrase":
        names.append(_PREVIOUS_PASSPHRASE)
    found = {name: str(cluster.secrets.get(name) or cluster.values.get(name) or "") for name in names}
    if not found["tfstate_password"]:
        # A user name alone opens nothing.
        del found["tfstate_username"]
    elif not found["tfstate_username"]:
        found["tfstate_username"] = _USERNAME
    return {name: value for name, value in found.items() if value}


def describe_previous(cluster: Cluster) -> str:
    """Return how the state was encrypted before: with a `passphrase`, `none`, or nothing where it stays."""
    previous = cluster.secrets.get(_PREVIOUS_PASSPHRASE)
    if previous == NOT_ENCRYPTED:
        return "none" if cluster.secrets.get(_PASSPHRASE) else ""
    return "passphrase" if previous else ""


def _name_key(passphrase: str | None) -> str:
    """Return the name under which OpenTofu keeps the salt of a passphrase in the state.

    It is the same before and after the passphrase becomes the previous one: under another name, OpenTofu
    would not find the salt. So this computation may never change. Six digits of a slow hash tell nobody the
    passphrase.
    """
    if not passphrase or passphrase == NOT_ENCRYPTED:
        return ""
    return f"passphrase-{_hash_slowly(passphrase)[:6]}"


@functools.cache
def _hash_slowly(passphrase: str) -> str:
    return hashlib.scrypt(passphrase.encode(), salt=b"stackyard cluster state", n=2**14, r=8, p=1).hex()
