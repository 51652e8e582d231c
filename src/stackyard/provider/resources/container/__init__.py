"""`proxmox_virtual_environment_container`: a container, from its template or source to its end.

`making` sends the one call that makes it, `creating` finishes it, `updating` changes it, `deleting` ends it.
`properties` turns the blocks of a configuration into properties of Proxmox, `describing` turns them back; a
change is the difference between the properties of two states. `rules` and `planning` say what a plan does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.container.creating import create
from stackyard.provider.resources.container.deleting import delete
from stackyard.provider.resources.container.planning import check, plan
from stackyard.provider.resources.container.reading import read
from stackyard.provider.resources.container.rules import RULES
from stackyard.provider.resources.container.updating import update

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = ["CONTAINER"]


def _identify(given: str) -> Object:
    node, _, vm_id = given.partition("/")
    if not node or not vm_id.isdigit():
        raise ImportIdError(f"The id of a container has the form NODE/VMID, and {given!r} does not.")
    return {"id": vm_id, "vm_id": int(vm_id), "node_name": node}


CONTAINER = Resource(
    names=("proxmox_virtual_environment_container",),
    create=create,
    read=read,
    update=update,
    delete=delete,
    identify=_identify,
    rules=RULES,
    plan=plan,
    validate=check,
)
