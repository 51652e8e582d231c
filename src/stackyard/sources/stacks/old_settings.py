"""What `stackyard.yaml` said at another commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.clients.git.compare import Comparison
from stackyard.sources.site.document import parse_document
from stackyard.sources.site.entities.stacks import RepositoryFile
from stackyard.sources.site.shape import validate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_old_repository"]


async def read_old_repository(top: Path, commit: str, path: str) -> dict[str, Any] | None:
    """Return what the file said, empty where it said nothing, None where it was not valid."""
    content = await Comparison(top=top).read_file(commit, path)
    if content is None or not content.strip():
        return {}
    found = Diagnostics()
    document = parse_document(content.decode("utf-8", "replace"), path, found)
    checked = None if document is None else validate(RepositoryFile, document, found)
    return None if checked is None else checked.model_dump(exclude_unset=True)
