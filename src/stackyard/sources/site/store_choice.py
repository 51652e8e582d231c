"""Which store is used: one word in `site.yaml`, in `stackyard.yaml` of the repository, or STACKYARD_STORE."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.directories import PROJECT_FOLDER, find_git_top
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.clients.objects.open_store import check_address
from stackyard.sources.site.discovery import SITE_FILE, SiteNotFoundError, find_site
from stackyard.sources.site.document import read_document
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.pool import lent_store

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "REPOSITORY_FILE",
    "STORE_VARIABLE",
    "StoreChoiceError",
    "choose_store",
    "find_store",
    "read_site_store",
]

STORE_VARIABLE = "STACKYARD_STORE"
REPOSITORY_FILE = "stackyard.yaml"
_DEPLOYMENT_FILE = "deployment.yaml"


class StoreChoiceError(InvalidInputError):
    """site.yaml and stackyard.yaml name different stores."""

    code = "E-STORE-CHOICE"
    summary = "Two files name different stores"
    default_remedy = "Remove `store` from one of the two files."


def choose_store(
    root: Path, base: Path, *, site_store: str | None = None, site_key: str | None = None
) -> ChosenStore:
    """Return the store of a site or of a deployment object.

    Args:
        root: The folder of the site, or of the working tree of the object.
        base: The folder for what stays on this machine.
        site_store: What `site.yaml` says.
        site_key: The key of the site as its secrets have it.

    Raises:
        StoreChoiceError: Two of the words contradict each other.
        UsageError: The address makes no sense.
        InvalidInputError: `stackyard.yaml` is not valid.
    """
    if (lent := lent_store()) is not None:
        return ChosenStore(base=base, address=lent[0], chosen_by="the outer run", site_key=lent[1])
    named = os.environ.get(STORE_VARIABLE)
    if named:
        try:
            check_address(named)
        except UsageError as err:
            raise UsageError(f"{STORE_VARIABLE}: {err.detail}", remedy=err.remedy) from err
        return ChosenStore(base=base, address=named, chosen_by=STORE_VARIABLE, site_key=site_key)
    path, of_repository = _read_repository(root)
    if site_store and of_repository and site_store != of_repository:
        raise StoreChoiceError(f"`store` in site.yaml differs from `store` in {path}.")
    address = site_store or of_repository
    if address is None:
        return ChosenStore(base=base, site_key=site_key)
    check_address(address)
    chosen_by = "site.yaml" if site_store else str(path)
    return ChosenStore(base=base, address=address, chosen_by=chosen_by, site_key=site_key)


def find_store(start: Path | None = None) -> ChosenStore:
    """Return the store of the site, deployment object or repository around a folder, else that of the user.

    Only the words that choose it are read: the rest may be wrong, and no secret is opened.

    Args:
        start: The folder to look from; the current one when absent.

    Raises:
        StoreChoiceError: Two of the words contradict each other.
        UsageError: The address makes no sense.
        InvalidInputError: A file that could name it is not valid.
    """
    here = Path(os.path.abspath(start or "."))
    for folder in (here, *here.parents):
        if (folder / _DEPLOYMENT_FILE).is_file():
            return choose_store(folder, folder / PROJECT_FOLDER, site_store=read_site_store(folder))
    try:
        root = find_site(start=here)
    except SiteNotFoundError:
        for folder in _upwards(here):
            # A repository of stacks: it says so itself, or something was run in it before.
            if (folder / REPOSITORY_FILE).is_file() or (folder / PROJECT_FOLDER).is_dir():
                return choose_store(folder, folder / PROJECT_FOLDER)
        return choose_store(here, directories.data_folder())
    return choose_store(root, root / PROJECT_FOLDER, site_store=read_site_store(root))


def read_site_store(root: Path) -> str | None:
    """Return the store that `site.yaml` names, where there is such a file."""
    path = root / SITE_FILE
    if not path.is_file():
        return None
    found = Diagnostics()
    document = read_document(path, found)
    found.raise_errors(str(path))
    said = None if document is None else document.data.get("store")
    if said is not None and not isinstance(said, str):
        raise UsageError(f"`store` in {path} is not the address of a store.")
    return said


def _read_repository(root: Path) -> tuple[Path | None, str | None]:
    """Return the file of the repository that a folder is in, and the store that it names."""
    for folder in _upwards(root):
        path = folder / REPOSITORY_FILE
        if path.is_file():
            from stackyard.sources.site.repository_file import (  # lazy: pydantic, for a file that few have
                read_repository_file,
            )

            return path, read_repository_file(path).store
    return None, None


def _upwards(root: Path) -> Iterator[Path]:
    """Yield a folder and those above it up to the top of its repository; only itself outside of any."""
    above = (root, *root.parents)
    yield from above[: above.index(find_git_top(root) or root) + 1]
