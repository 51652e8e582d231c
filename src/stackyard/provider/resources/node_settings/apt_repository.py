"""`proxmox_apt_repository`: whether a package repository of a node is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import at_least, matches
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.node_settings.repositories import (
    find_repositories,
    repositories_path,
    repository_values,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


async def _set(work: Work, planned: Object) -> Object:
    sent = {"path": planned["file_path"], "index": planned["index"], "enabled": planned["enabled"]}
    await work.client.post(repositories_path(planned), sent)
    return await _read(work, planned)


async def _read(work: Work, state: Object) -> Object:
    return {**state, **repository_values(state, await find_repositories(work, state))}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    return await _set(work, planned)


async def _delete(work: Work, state: Object) -> None:
    """Leave the repository as it is: no call removes one."""


def _identify(given: str) -> Object:
    parts = given.split(",")
    if len(parts) != 3 or not parts[1].startswith("/") or not parts[2].isdecimal():
        raise ImportIdError(
            "The id of a repository has the form NODE,FILE,INDEX, such as pve1,/etc/apt/sources.list,0, and "
            f"{given!r} does not."
        )
    return {"id": given, "node": parts[0], "file_path": parts[1], "index": int(parts[2])}


RESOURCE = Resource(
    names=both_names("apt_repository"),
    create=_set,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={
        "id": Rule(keep=True),
        "enabled": Rule(default=True),
        "file_path": Rule(replace=True, check=matches(r"/.*", "be an absolute path")),
        "index": Rule(replace=True, check=at_least(0)),
        "node": Rule(replace=True, check=matches(r".*\S.*", "not be empty")),
    },
)
