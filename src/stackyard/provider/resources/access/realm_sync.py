"""`proxmox_realm_sync`: takes users and groups over from a directory server, when it is made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.checks import one_of
from stackyard.provider.fields import FLAG, TEXT, Field, params
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_SYNC_S = 300.0
_FIELDS = (
    Field(attribute="scope", form=TEXT),
    Field(attribute="remove_vanished", key="remove-vanished", form=TEXT),
    Field(attribute="enable_new", key="enable-new", form=FLAG),
    Field(attribute="full", form=FLAG),
    Field(attribute="purge", form=FLAG),
    Field(attribute="dry_run", key="dry-run", form=FLAG),
)


def _path(state: Object) -> str:
    return f"/access/domains/{proxmox.quote(state['realm'])}"


async def _sync(work: Work, planned: Object) -> Object:
    upid = await work.client.post(f"{_path(planned)}/sync", params(_FIELDS, planned))
    try:
        await proxmox.wait_for(work.client, upid, timeout_s=_SYNC_S)
    except (proxmox.TaskFailedError, proxmox.TaskTimeoutError) as err:
        # bpg does not look at the task. The request was made here too, and the user hears what came of it.
        work.warn("The synchronisation of a realm did not end well", err.detail)
    return {**planned, "id": planned["realm"]}


async def _read(work: Work, state: Object) -> Object | None:
    try:
        await work.client.get(_path(state))
    except proxmox.MissingError:
        return None
    return state


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    return await _sync(work, planned)


async def _delete(work: Work, state: Object) -> None:
    """Leave everything as it is: what was taken over stays."""


RESOURCE = Resource(
    names=both_names("realm_sync"),
    create=_sync,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": given, "realm": given},
    rules={
        "id": Rule(keep=True),
        "realm": Rule(replace=True),
        "scope": Rule(check=one_of("users", "groups", "both")),
    },
)
