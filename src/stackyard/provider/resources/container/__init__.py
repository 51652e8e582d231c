"""`proxmox_virtual_environment_container`: a container, from its template or source to its removal.

`creation` sends the call that makes it, `create` completes it, `update` changes it, `delete` removes it.
`properties` converts the blocks of a configuration to properties of Proxmox, and `describe` converts them
back. A change is the difference between the properties of two states. `rules` and `plan` define the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.container.create import create
from stackyard.provider.resources.container.delete import delete
from stackyard.provider.resources.container.plan import check, plan
from stackyard.provider.resources.container.read import read
from stackyard.provider.resources.container.rules import RULES
from stackyard.provider.resources.container.update import update

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


def _identify(given: str) -> Object:
    node, _, vm_id = given.partition("/")
    if not node or not vm_id.isdigit():
        raise ImportIdError(f"The id of a container has the form NODE/VMID, and {given!r} does not.")
    return {"id": vm_id, "vm_id": int(vm_id), "node_name": node}


RESOURCE = Resource(
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
