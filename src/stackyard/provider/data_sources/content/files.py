"""`proxmox_files`: the files of a datastore, all of them or those with certain names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.provider.data_sources.content.listing import RULES, file_name, file_values, list_files
from stackyard.provider.kinds import DataSource
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


def _check_pattern(value: Any) -> str | None:
    try:
        re.compile(str(value))
    except re.error as err:
        return f"must be a regular expression ({err})"
    return None


async def _read_files(work: Work, config: Object) -> Object:
    pattern = re.compile(str(config.get("file_name_regex") or ""))
    files = [
        {**file_values(file), "file_name": file_name(file), "content_type": str(file.get("content") or "")}
        for file in await list_files(work, config)
        if pattern.search(file_name(file))
    ]
    return {**config, "files": files}


DATA_SOURCE = DataSource(
    names=("proxmox_files",),
    read=_read_files,
    rules={**RULES, "file_name_regex": Rule(check=_check_pattern)},
)
