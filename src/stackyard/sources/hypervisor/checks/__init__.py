"""Checks of the files of `hypervisors/`: what Proxmox would refuse, or take and not do what was meant.

Each check adds findings and does not know the others. What Proxmox may have beside the files, such as a user
that was made by hand, is a warning where a file names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.hypervisor.checks.access import check_access
from stackyard.sources.hypervisor.checks.addresses import check_addresses
from stackyard.sources.hypervisor.checks.firewall import check_firewall
from stackyard.sources.hypervisor.checks.interfaces import check_interfaces
from stackyard.sources.hypervisor.checks.jobs import check_jobs
from stackyard.sources.hypervisor.checks.owners import check_owners
from stackyard.sources.hypervisor.checks.references import check_references
from stackyard.sources.hypervisor.checks.storages import check_storages
from stackyard.sources.hypervisor.checks.vnets import check_vnets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["check_hypervisors"]

_CHECKS = (
    check_owners,
    check_references,
    check_interfaces,
    check_addresses,
    check_storages,
    check_access,
    check_firewall,
    check_jobs,
    check_vnets,
)


def check_hypervisors(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Run every check.

    Args:
        files: All files of clusters and nodes.
        site: What the rest of the site says.
        found: Takes the findings.
    """
    for check in _CHECKS:
        check(files, site, found)
