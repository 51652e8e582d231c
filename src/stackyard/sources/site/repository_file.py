"""`stackyard.yaml`, at the top of a repository: what holds for everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.sources.site.document import EMPTY_FILE, read_document
from stackyard.sources.site.tree import validate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RepositoryFile", "read_repository_file"]


class RepositoryFile(BaseModel):
    """What the file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # Where what runs leave is kept: s3://…, postgresql://… or https://….
    store: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None


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
