"""Which store is used: one word in `site.yaml`, in the repository's `stackyard.yaml`, or in STACKYARD_STORE."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.clients.objects.open_store import check_address
from stackyard.sources.site.document import EMPTY_FILE, read_document
from stackyard.sources.site.tree import validate
from stackyard.sources.store import ChosenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["REPOSITORY_FILE", "STORE_VARIABLE", "StoreChoiceError", "choose_store"]

STORE_VARIABLE = "STACKYARD_STORE"
REPOSITORY_FILE = "stackyard.yaml"


class StoreChoiceError(InvalidInputError):
    """The words that choose the store contradict each other, or make no sense."""

    code = "E-STORE-CHOICE"
    summary = "It is not clear which store is meant"
    default_remedy = (
        "Name one store: s3://bucket/prefix, postgresql://user@host/database or https://host:port."
    )


class RepositoryFile(BaseModel):
    """`stackyard.yaml`, at the top of a repository."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # Where what runs leave is kept: s3://…, postgresql://… or https://….
    store: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None


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
    named = os.environ.get(STORE_VARIABLE)
    if named:
        try:
            check_address(named)
        except UsageError as err:
            raise UsageError(f"{STORE_VARIABLE}: {err.detail}", remedy=err.remedy) from err
        return ChosenStore(base=base, address=named, chosen_by=STORE_VARIABLE, site_key=site_key)
    path, of_repository = _read_repository(root)
    if site_store and of_repository and site_store != of_repository:
        raise StoreChoiceError(f"site.yaml names another `store` than {path}.")
    address = site_store or of_repository
    if address is None:
        return ChosenStore(base=base, site_key=site_key)
    check_address(address)
    chosen_by = "site.yaml" if site_store else str(path)
    return ChosenStore(base=base, address=address, chosen_by=chosen_by, site_key=site_key)


def _read_repository(root: Path) -> tuple[Path | None, str | None]:
    """Return the file of the repository that a folder is in, and the store that it names."""
    for folder in _upwards(root):
        path = folder / REPOSITORY_FILE
        if path.is_file():
            return path, _read_file(path).store
    return None, None


def _upwards(root: Path) -> Iterator[Path]:
    """Yield a folder and those above it up to the top of its repository; only itself outside of any."""
    above = (root, *root.parents)
    top = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), 0)
    yield from above[: top + 1]


def _read_file(path: Path) -> RepositoryFile:
    found = Diagnostics()
    document = read_document(path, found)
    if document is None and [finding.kind for finding in found.errors] == [EMPTY_FILE]:
        return RepositoryFile()
    settings = None if document is None else validate(RepositoryFile, document, found)
    found.raise_errors(str(path))
    if settings is None:
        raise InvalidInputError(f"{path} is not valid.")
    return settings
