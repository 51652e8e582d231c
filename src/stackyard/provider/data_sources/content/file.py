"""`proxmox_file`: one file in a datastore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import matches
from stackyard.provider.data_sources.content.listing import RULES, file_name, file_values, list_files
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read_file(work: Work, config: Object) -> Object:
    name = config["file_name"]
    found = next((file for file in await list_files(work, config) if file_name(file) == name), None)
    if found is None:
        raise AttributeValueError(
            f"The datastore {config['datastore_id']} on {config['node_name']} has no file {name} "
            f"of the type {config['content_type']}.",
            ("file_name",),
        )
    return {**config, **file_values(found)}


DATA_SOURCE = DataSource(
    names=both_names("file"),
    read=_read_file,
    rules={**RULES, "file_name": Rule(check=matches(r"(?s).+", "not be empty"))},
)
