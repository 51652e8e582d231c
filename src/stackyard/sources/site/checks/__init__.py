"""Checks between the files of a site: references, ids, addresses, tokens, and whether guests are complete.

Each check adds findings and does not know the others. If a file itself is wrong, its valid parts are still
checked: its references, and its complete addresses and networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.site.checks.addresses import check_addresses
from stackyard.sources.site.checks.auth import check_auth
from stackyard.sources.site.checks.credentials import check_credentials
from stackyard.sources.site.checks.guests import check_guests
from stackyard.sources.site.checks.hypervisors import check_hypervisors
from stackyard.sources.site.checks.ids import check_ids
from stackyard.sources.site.checks.model import check_model
from stackyard.sources.site.checks.networks import check_networks
from stackyard.sources.site.checks.references import check_references

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.load import Site

__all__ = ["check_site"]

_CHECKS = (
    check_references,
    check_guests,
    check_ids,
    check_networks,
    check_addresses,
    check_auth,
    check_credentials,
    check_model,
    check_hypervisors,
)
_WITHOUT_SITE_FILE = (check_references, check_ids, check_auth, check_credentials, check_hypervisors)
_WITH_DAMAGED_SITE_FILE = (
    check_references,
    check_guests,
    check_ids,
    check_auth,
    check_credentials,
    check_hypervisors,
)


def check_site(site: Site, found: Diagnostics) -> None:
    """Run every check; those that need site.yaml only where it can be read."""
    for check in _checks(site):
        check(site, found)


def _checks(site: Site) -> tuple[Callable[[Site, Diagnostics], None], ...]:
    if site.file is None:
        return _WITHOUT_SITE_FILE
    return _WITH_DAMAGED_SITE_FILE if "site" in site.damaged else _CHECKS
