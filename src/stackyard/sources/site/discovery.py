"""Where the site is: what the user says, the folders around, then the legacy locations."""

from __future__ import annotations

import os
from pathlib import Path

from stackyard.base.errors import InvalidInputError, Location

__all__ = ["HOMESTAK_VARIABLE", "SITE_FILE", "SYSTEM_PLACES", "VARIABLE", "SiteNotFoundError", "find_site"]

SITE_FILE = "site.yaml"
VARIABLE = "STACKYARD_SITE"
HOMESTAK_VARIABLE = "HOMESTAK_SITE_CONFIG"
SIBLING = "site-config"
SYSTEM_PLACES = (Path("/usr/local/etc/homestak"), Path("/opt/homestak/site-config"))


class SiteNotFoundError(InvalidInputError):
    """There is no site where the user says, or none was found in any of the usual places."""

    code = "E-SITE-NOT-FOUND"
    summary = "There is no site"
    default_remedy = (
        "Name its folder with --site DIR or STACKYARD_SITE, or go there; it is the one with site.yaml."
    )


def find_site(said: str | Path | None = None, *, start: Path | None = None) -> Path:
    """Return the folder of the site.

    In this order: what is said, STACKYARD_SITE, HOMESTAK_SITE_CONFIG, the current folder and those above it,
    the folder `site-config` beside the current one, the places of a system-wide installation.

    Args:
        said: What the user named.
        start: The folder to look from; the current one when absent.

    Raises:
        SiteNotFoundError: There is none, or none where the user says.
    """
    for source, place in (
        ("--site", said),
        (VARIABLE, os.environ.get(VARIABLE)),
        (HOMESTAK_VARIABLE, os.environ.get(HOMESTAK_VARIABLE)),
    ):
        if place is not None and str(place):
            return _explicit(Path(place), source)
    here = Path(os.path.abspath(start or "."))
    for folder in (here, *here.parents, here.parent / SIBLING, *SYSTEM_PLACES):
        if (folder / SITE_FILE).is_file():
            return folder
    raise SiteNotFoundError(
        f"Neither {here} nor a folder above it holds {SITE_FILE}, and there is none in "
        f"{here.parent / SIBLING}, {SYSTEM_PLACES[0]} or {SYSTEM_PLACES[1]}."
    )


def _explicit(folder: Path, source: str) -> Path:
    """Return a folder that the user named; one that is wrong is an error, and no other place is tried."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise SiteNotFoundError(f"{source} names {folder}, which {what}.", where=Location(str(folder)))
    if not (folder / SITE_FILE).is_file():
        raise SiteNotFoundError(
            f"{source} names {folder}, which holds no {SITE_FILE}.", where=Location(str(folder / SITE_FILE))
        )
    return Path(os.path.abspath(folder))
