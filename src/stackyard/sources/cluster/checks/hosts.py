"""Proxmox: where VMs are, how it is reached, and what the loss of a host means."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.resolve import choose_node_values, is_virtual

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_hosts"]

NO_HOST = Kind(
    code="E-CLUSTER-NO-HOST",
    summary="A VM has no Proxmox node",
    remedy="Set `proxmox_node` for the node or the cluster, or `proxmox_nodes` to spread nodes over several.",
)
NO_API = Kind(
    code="E-CLUSTER-NO-API",
    summary="A Proxmox node is named, and the address of its API is missing",
    remedy="Add `proxmox_api_url`, or remove the node where the machines are no VMs.",
)
TWO_NAMES = Kind(
    code="E-CLUSTER-TWO-NAMES",
    summary="Two fields that mean the same are both given",
    remedy="Keep `proxmox_node`; `target_node` is another name for it.",
)
HALF_TOKEN = Kind(
    code="E-CLUSTER-HALF-TOKEN",
    summary="Only one half of a credential is there",
    remedy="Give both: the name and the secret belong together.",
)
UNUSED_VM = Kind(
    code="W-CLUSTER-UNUSED-VM",
    summary="Settings of VMs have no effect",
    remedy="Add `proxmox_api_url` and `proxmox_node` to have VMs made, or remove the settings.",
    severity=Severity.WARNING,
)
CLEAR_API = Kind(
    code="W-CLUSTER-CLEAR-API",
    summary="The API token would cross the network in clear",
    remedy="Use https; with `proxmox_insecure: true` where no authority signed the certificate.",
    severity=Severity.WARNING,
)
QUORUM = Kind(
    code="W-CLUSTER-QUORUM",
    summary="The loss of one Proxmox node stops the cluster",
    remedy="Spread the controllers: as many hosts as controllers, or no host with half of them.",
    severity=Severity.WARNING,
)
_LEAST_REDUNDANT = 3
_HALVES = (
    ("proxmox_api_token_id", "proxmox_api_token_secret"),
    ("proxmox_csi_token_id", "proxmox_csi_token_secret"),
    ("proxmox_ccm_token_id", "proxmox_ccm_token_secret"),
)


def check_hosts(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse VMs without a host, half of a credential; warn about what one host takes with it."""
    _check_names(read, found)
    for pair in _HALVES:
        there = [name for name in pair if name in read.secret_names]
        if len(there) == 1:
            missing = next(name for name in pair if name not in there)
            found.add(HALF_TOKEN, f"`{there[0]}` has no `{missing}`.", read.places.key_place(there[0]))
    url = read.fields.proxmox_api_url
    if not is_virtual(read.fields):
        _check_metal(read, found)
        return
    if url is not None and url.startswith("http:"):
        found.add(CLEAR_API, f"The address is {url}.", read.places.place("proxmox_api_url"))
    hosts = [one["proxmox_node"].value for one in choose_node_values(read)]
    for index, host in enumerate(hosts):
        if host is None:
            found.add(
                NO_HOST, f"`{read.places.name('nodes', index)}` has none.", read.places.place("nodes", index)
            )
    _check_quorum(read, found, hosts)


def _check_names(read: ClusterInput, found: Diagnostics) -> None:
    if read.is_given("proxmox_node") and read.is_given("target_node"):
        found.add(
            TWO_NAMES, "`proxmox_node` and `target_node` are given.", read.places.key_place("target_node")
        )
    for index, node in enumerate(read.nodes):
        if node.proxmox_node is not None and node.target_node is not None:
            where = read.places.key_place("nodes", index, "target_node")
            found.add(TWO_NAMES, f"`{read.places.name('nodes', index)}` has both.", where)


def _check_metal(read: ClusterInput, found: Diagnostics) -> None:
    """Hold the settings of VMs against machines of their own."""
    if read.is_wrong("proxmox_api_url"):
        return
    for name in ("proxmox_node", "target_node", "proxmox_nodes"):
        if read.is_given(name):
            found.add(NO_API, f"`{read.places.name(name)}` is given alone.", read.places.key_place(name))
    for index, node in enumerate(read.nodes):
        given = [name for name in type(node).model_fields if name.startswith("vm_") and getattr(node, name)]
        if node.proxmox_node or node.target_node:
            name = "proxmox_node" if node.proxmox_node else "target_node"
            where = read.places.key_place("nodes", index, name)
            found.add(NO_API, f"`{read.places.name('nodes', index, name)}` is given alone.", where)
        elif given:
            detail = f"`{read.places.name('nodes', index, given[0])}`: no node is a VM."
            found.add(UNUSED_VM, detail, read.places.key_place("nodes", index, given[0]))
            return


def _check_quorum(read: ClusterInput, found: Diagnostics, hosts: list[str | None]) -> None:
    """Warn where the hosts that are named could stand the loss of one, and this spread cannot."""
    used = Counter(
        host for host, node in zip(hosts, read.nodes, strict=True) if node.controller and host is not None
    )
    controllers = sum(used.values())
    named = {host for host in (*hosts, *(read.fields.proxmox_nodes or ())) if host is not None}
    if controllers < _LEAST_REDUNDANT or not named:
        return
    majority = controllers // 2 + 1
    best = controllers - -(-controllers // len(named))
    host, most = used.most_common(1)[0]
    if best >= majority > controllers - most:
        detail = f"{most} of {controllers} controllers are on {host}; {len(named)} hosts are named."
        where = (
            read.places.place("proxmox_nodes") if read.fields.proxmox_nodes else read.places.place("nodes")
        )
        found.add(QUORUM, detail, where)
