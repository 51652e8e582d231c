"""The store of the site here, as the verbs of `stackyard store` open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore

__all__ = ["open_named", "site_option", "store_here"]

site_option = click.option(
    "--site", metavar="DIR", help="The folder of the site (default: search from the current folder upwards)."
)


def store_here(site: str | None) -> ChosenStore:
    """Return the store of the site, with its key where the secrets have it; that of the user without a site.

    Raises:
        InvalidInputError: It is not clear which store is meant.
    """
    from stackyard.sources.site.discovery import SiteNotFoundError  # lazy: only when a verb runs
    from stackyard.sources.site.load import Site  # lazy: as above
    from stackyard.sources.site.store_choice import find_store  # lazy: as above

    try:
        return Site.open(site).store
    except SiteNotFoundError:
        if site is not None:
            raise
        return find_store()


def open_named(named: str, *, create: bool) -> Objects:
    """Open a store that a command line names: an address, or a folder.

    Raises:
        StoreError: It cannot be used.
        UsageError: It makes no sense.
    """
    from stackyard.clients.objects import open_objects  # lazy: only when a verb runs
    from stackyard.sources.store.at_rest import read_ring  # lazy: as above

    return open_objects(named if "://" in named else Path(named), ring=read_ring(), create=create)
