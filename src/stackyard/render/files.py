"""Files as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Download, Snippet
from stackyard.render.names import label
from stackyard.render.references import DOWNLOAD, FILE
from stackyard.render.terms import Json, blocks, present, template

if TYPE_CHECKING:
    from stackyard.desired import Desired, Upload

__all__ = ["file_resources"]


def file_resources(desired: Desired) -> dict[str, dict[str, Json]]:
    """Return the resources by type and label."""
    resources: dict[str, dict[str, Json]] = {}
    for file in desired.files:
        if not isinstance(file, Snippet) and file.is_shared:
            continue
        if isinstance(file, Download):
            resources.setdefault(DOWNLOAD, {})[label(file.key)] = _download(file)
        elif isinstance(file, Snippet):
            resources.setdefault(FILE, {})[label(file.key)] = _snippet(file)
        else:
            resources.setdefault(FILE, {})[label(file.key)] = _upload(file)
    return resources


def _download(file: Download) -> dict[str, Json]:
    return present(
        {
            "node_name": file.node,
            "datastore_id": file.datastore,
            "content_type": file.content,
            "url": file.url,
            "file_name": file.stored_name,
            "checksum": file.checksum,
            "checksum_algorithm": file.checksum_algorithm,
            "decompression_algorithm": file.decompression,
            "verify": file.verify_tls,
            "overwrite": file.overwrite,
        }
    )


def _snippet(file: Snippet) -> dict[str, Json]:
    return present(
        {
            "node_name": file.node,
            "datastore_id": file.datastore,
            "content_type": "snippets",
            "file_mode": file.mode,
            "source_raw": blocks({"file_name": file.file_name, "data": template(file.content)}),
        }
    )


def _upload(file: Upload) -> dict[str, Json]:
    return present(
        {
            "node_name": file.node,
            "datastore_id": file.datastore,
            "content_type": file.content,
            "source_file": blocks(
                {"path": file.path, "file_name": file.file_name, "checksum": file.checksum}
            ),
        }
    )
