"""`proxmox_apt_standard_repository`: a package repository of Proxmox, by the name that Proxmox has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import matches
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.node_settings.repositories import (
    find_repositories,
    is_standard,
    repositories_path,
    standard_values,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


async def _create(work: Work, planned: Object) -> Object:
    await work.client.put(repositories_path(planned), {"handle": planned["handle"]})
    return {**planned, **standard_values(planned, await find_repositories(work, planned))}


async def _read(work: Work, state: Object) -> Object | None:
    found = await find_repositories(work, state)
    return {**state, **standard_values(state, found)} if is_standard(state, found) else None


async def _delete(work: Work, state: Object) -> None:
    """Leave the repository as it is: no call removes one."""


def _identify(given: str) -> Object:
    node, comma, handle = given.partition(",")
    if not (node and comma and handle) or "," in handle:
        raise ImportIdError(
            "The id of a standard repository has the form NODE,HANDLE, such as pve1,no-subscription, and "
            f"{given!r} does not."
        )
    return {"id": given, "node": node, "handle": handle}


_NAMED = Rule(replace=True, check=matches(r".*\S.*", "not be empty"))
RESOURCE = Resource(
    names=both_names("apt_standard_repository"),
    create=_create,
    read=_read,
    delete=_delete,
    identify=_identify,
    rules={"id": Rule(keep=True), "handle": _NAMED, "node": _NAMED},
)
