"""All clusters of a repository, checked together: what each says, and what two of them both want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import Location
from stackyard.sources.cluster.bootstrap_file import read_bootstrap
from stackyard.sources.cluster.load import open_cluster
from stackyard.sources.cluster.names import find_cluster, find_clusters
from stackyard.sources.cluster.secret_place import check_secret_place
from stackyard.sources.cluster.vm_ids import list_vm_ids
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence
    from pathlib import Path

    from stackyard.sources.cluster.model import Cluster

__all__ = ["CheckedClusters", "check_together", "refuse_shared", "validate_clusters"]

SAME_STATE = Kind(
    code="E-CLUSTER-SAME-STATE",
    summary="Two clusters have the same state",
    remedy="Give one of them another `tfstate_address`: each would destroy the VMs of the other.",
)
SHARED_VM_ID = Kind(
    code="E-CLUSTER-SHARED-VM-ID",
    summary="Nodes of two clusters have the same VM ID",
    remedy="Give one of the two another `vm_id`, or none: then Proxmox chooses one.",
)
SHARED_ADDRESS = Kind(
    code="E-CLUSTER-SHARED-ADDRESS",
    summary="Two clusters use the same address",
    remedy="Give one of the two another address.",
)

SHARED_NAME = Kind(
    code="W-CLUSTER-SHARED-NAME",
    summary="VMs of two clusters have the same name",
    remedy="Give the nodes of one of them other names: a VM is not created beside one of its name.",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClusters:
    """Clusters in which nothing is wrong.

    Attributes:
        clusters: The clusters.
        found: What is worth a warning.
    """

    clusters: tuple[Cluster, ...]
    found: Diagnostics


def validate_clusters(name: str | None = None, start: Path | None = None) -> CheckedClusters:
    """Check a cluster by its name, or all clusters of the repository.

    Raises:
        ClusterNotFoundError: There is none.
        InvalidInputError: Something is wrong; the error carries every problem of all of them.
    """
    folders = list(find_clusters(start).values())
    if not folders or name is not None:
        folders = [find_cluster(name, start)]
    opened = [open_cluster(one.folder, are_secrets_needed=False) for one in folders]
    found = Diagnostics()
    for one in opened:
        found.extend(one.found)
        if one.read is not None:
            check_secret_place(one.read, found)
        read_bootstrap(one.folder, found)
    clusters = tuple(one.cluster for one in opened if one.cluster is not None)
    check_together(clusters, found)
    names = ", ".join(one.name for one in opened)
    found.raise_errors(f"The cluster {names}" if len(opened) == 1 else f"One of the clusters {names}")
    return CheckedClusters(clusters=clusters, found=found)


def refuse_shared(cluster: Cluster, start: Path | None = None) -> None:
    """Refuse a cluster that wants what another one of its repository has.

    What else is wrong with the others is no reason to stop its plan.

    Raises:
        InvalidInputError: It does; the error carries every problem.
    """
    found = Diagnostics()
    for one in find_clusters(start).values():
        if one.folder == cluster.folder:
            continue
        other = open_cluster(one.folder, are_secrets_needed=False).cluster
        if other is not None:
            check_together((other, cluster), found)
    found.raise_errors(f"The cluster {cluster.name}")


def check_together(clusters: Sequence[Cluster], found: Diagnostics) -> None:
    """Refuse what two clusters cannot both have, and warn of what they cannot both create."""
    known: dict[Hashable, tuple[Cluster, Location | None]] = {}
    for cluster in clusters:
        for kind, key, what, where in _list_claims(cluster):
            other, first = known.setdefault((kind.code, key), (cluster, where))
            if other is not cluster:
                detail = f"{what} of {cluster.name} is also that of {other.name}."
                found.add(kind, detail, where, also=() if first is None else (first,))


def _list_claims(cluster: Cluster) -> Iterator[tuple[Kind, Hashable, str, Location | None]]:
    """Return what a cluster wants for itself alone."""
    file = Location(format_path(cluster.files[0]), 1, 1) if cluster.files else None
    if cluster.state is not None:
        yield SAME_STATE, cluster.state.url, f"The state {cluster.state.url}", file
    if cluster.proxmox is not None:
        for wanted in list_vm_ids(cluster):
            key = (cluster.proxmox.endpoint, wanted.vm_id)
            yield SHARED_VM_ID, key, f"The VM ID {wanted.vm_id}", wanted.where
        for node in cluster.nodes:
            if node.vm is not None:
                yield SHARED_NAME, (cluster.proxmox.endpoint, node.name), f"The name {node.name}", node.where
    # Two clusters may have the same network behind different routers; the same VLAN of the same one they
    # do not share by accident, and then no address can be used twice.
    network = (cluster.network.node_cidr, cluster.network.gateway, cluster.network.vlan_tag)
    yield SHARED_ADDRESS, (network, cluster.network.api_addr), f"The address {cluster.network.api_addr}", file
    for node in cluster.nodes:
        yield SHARED_ADDRESS, (network, node.address), f"The address {node.address}", node.where
