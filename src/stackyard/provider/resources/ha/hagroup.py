"""`proxmox_hagroup`: nodes on which guests under high availability run, before rules took their place."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.ha.checks import COMMENT, HA_ID
from stackyard.provider.resources.ha.nodes import NODES, check_nodes
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["GROUP_FIELDS", "PATH", "RESOURCE", "HaGroupsMigratedError", "group_values"]

PATH = "/cluster/ha/groups"
GROUP_FIELDS = (
    Field(attribute="nodes", form=NODES, clears=False),
    Field(attribute="comment", form=TEXT),
    Field(attribute="no_failback", key="nofailback", form=FLAG, clears=False),
    Field(attribute="restricted", form=FLAG, clears=False),
)
_MIGRATED = "groups have been migrated to rules"


class HaGroupsMigratedError(StackyardError):
    """A group is to be made in a cluster that has rules in place of groups."""

    code = "E-PROVIDER-HA-GROUPS"
    summary = "The cluster has rules in place of HA groups"
    default_remedy = (
        "Proxmox VE 9 turns the groups of a cluster into rules when all its nodes run it. "
        "Write a `proxmox_harule` of the type node-affinity in place of the `proxmox_hagroup`, "
        "and take `group` out of the `proxmox_haresource`s."
    )


def group_values(found: Mapping[str, Any]) -> Object:
    """Return the flags of a group, which Proxmox leaves out when they are off."""
    return {
        "no_failback": flag(found.get("nofailback")),
        "restricted": flag(found.get("restricted")),
    }


_GROUPS = Collection(
    path=PATH,
    key="group",
    attribute="group",
    fields=GROUP_FIELDS,
    own_state=lambda known, found: group_values(found),
)


async def _create(work: Work, planned: Object) -> Object:
    try:
        return await _GROUPS.create(work, planned)
    except proxmox.RefusedError as err:
        if _MIGRATED not in err.text:
            raise
        raise HaGroupsMigratedError(err.detail) from err


async def _read(work: Work, state: Object) -> Object | None:
    try:
        return await _GROUPS.read(work, state)
    except proxmox.RefusedError as err:
        if _MIGRATED not in err.text:
            raise
    _warn_of_migration(work, state)
    return None


async def _delete(work: Work, state: Object) -> None:
    try:
        await _GROUPS.delete(work, state)
    except proxmox.RefusedError as err:
        if _MIGRATED not in err.text:
            raise
        _warn_of_migration(work, state)


def _warn_of_migration(work: Work, state: Object) -> None:
    work.warn(
        HaGroupsMigratedError.summary,
        f"The HA group {state['group']} does not exist any more: Proxmox has migrated all groups to rules. "
        f"{HaGroupsMigratedError.default_remedy}",
    )


RESOURCE = dataclasses.replace(
    _GROUPS.resource(
        both_names("hagroup"),
        rules={
            "id": Rule(keep=True),
            # bpg changes the old one, and then does not find the new one.
            "group": Rule(replace=True, check=HA_ID),
            "comment": Rule(check=COMMENT),
            "nodes": Rule(check=check_nodes),
            "no_failback": Rule(default=False),
            "restricted": Rule(default=False),
        },
    ),
    create=_create,
    read=_read,
    delete=_delete,
)
