"""What the values of a cluster must be to each other; each topic has a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.cluster.checks.addresses import check_addresses
from stackyard.sources.cluster.checks.hardware import check_hardware
from stackyard.sources.cluster.checks.hosts import check_hosts
from stackyard.sources.cluster.checks.images import check_images
from stackyard.sources.cluster.checks.networks import check_networks
from stackyard.sources.cluster.checks.nodes import check_nodes
from stackyard.sources.cluster.checks.services import check_services
from stackyard.sources.cluster.checks.versions import check_versions

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_cluster"]

_CHECKS = (
    check_networks,
    check_addresses,
    check_nodes,
    check_images,
    check_versions,
    check_hardware,
    check_hosts,
    check_services,
)


def check_cluster(read: ClusterInput, found: Diagnostics) -> None:
    """Add everything that is wrong with a cluster."""
    for check in _CHECKS:
        check(read, found)
