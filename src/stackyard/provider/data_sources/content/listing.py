"""What both data sources of files have in common: the list of a datastore and what a line of it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches, one_of
from stackyard.provider.datastore_files import NodeDatastore
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RULES", "file_name", "file_values", "list_files"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0
_NOT_EMPTY = Rule(check=matches(r"(?s).+", "not be empty"))
_CONTENTS = ("backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl")
RULES = {
    "node_name": _NOT_EMPTY,
    "datastore_id": _NOT_EMPTY,
    "content_type": Rule(check=one_of(*_CONTENTS)),
}


async def list_files(work: Work, config: Object) -> list[dict[str, Any]]:
    """Return the files of a datastore in the order of their ids."""
    place = NodeDatastore(node=config["node_name"], datastore=config["datastore_id"])
    query = {"content": config.get("content_type")}
    listed = await work.client.get(f"{place.path}/content", query, max_age_s=_SAME_PICTURE_S)
    return sorted(listed or (), key=lambda file: str(file.get("volid")))


def file_name(file: dict[str, Any]) -> str:
    """Return the name in the id of a file; a disk of a guest on a volume group has none."""
    return str(file.get("volid")).partition(":")[2].partition("/")[2]


def file_values(file: dict[str, Any]) -> Object:
    """Return what a listed file says of itself."""
    return {
        "id": str(file.get("volid")),
        "file_size": int(file.get("size") or 0),
        "file_format": str(file.get("format") or ""),
        "vmid": None if file.get("vmid") is None else int(file["vmid"]),
    }
