"""`stackyard.yaml`, at the top of a repository: what holds for everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.sources.site.document import EMPTY_FILE, read_document
from stackyard.sources.site.entities.stacks import RepositoryFile
from stackyard.sources.site.shape import validate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RepositoryFile", "read_repository_file"]


def read_repository_file(path: Path) -> RepositoryFile:
    """Return what a file says; one with nothing in it says nothing.

    Raises:
        InvalidInputError: It is not valid; the error carries every problem.
    """
    found = Diagnostics()
    document = read_document(path, found)
    if document is None and [finding.kind for finding in found.errors] == [EMPTY_FILE]:
        return RepositoryFile()
    settings = None if document is None else validate(RepositoryFile, document, found)
    found.raise_errors(str(path))
    if settings is None:
        raise InvalidInputError(f"{path} is not valid.")
    return settings
