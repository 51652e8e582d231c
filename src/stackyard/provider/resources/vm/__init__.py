"""`proxmox_virtual_environment_vm`: a virtual machine with all its parts.

Each part (disks, network, cloud-init, ...) is one file with both directions: the property strings for the
API, and the blocks that are read back. `create`, `clone`, `update` and `delete` combine them. `plan` and
`rules` define the plan. That a guest is made only once, whatever happens, is `provider.guests.creation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.vm.create import create
from stackyard.provider.resources.vm.delete import delete
from stackyard.provider.resources.vm.plan import plan
from stackyard.provider.resources.vm.read import refresh
from stackyard.provider.resources.vm.rules import RULES
from stackyard.provider.resources.vm.update import update
from stackyard.provider.resources.vm.validate import validate

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


def _identify(given: str) -> Object:
    node, _, number = given.partition("/")
    if not node or not number.isdigit():
        raise ImportIdError(f"The id of a VM has the form NODE/NUMBER, and {given!r} does not.")
    return {"id": number, "node_name": node, "vm_id": int(number)}


RESOURCE = Resource(
    names=("proxmox_virtual_environment_vm",),
    create=create,
    read=refresh,
    update=update,
    delete=delete,
    identify=_identify,
    rules=RULES,
    plan=plan,
    validate=validate,
)
