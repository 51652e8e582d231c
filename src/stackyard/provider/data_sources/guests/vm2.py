"""`proxmox_vm`: one VM, with its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.guests import VM, Guest
from stackyard.provider.kinds import DataSource
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.guests.timeouts import RULES, limit
from stackyard.provider.resources.guests.vm2 import describe

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    guest = Guest(work=work, node=str(config["node_name"]), vm_id=int(config["id"]), kind=VM)
    async with limit(config, "read"):
        found = await guest.find_config()
        status = None if found is None else await guest.status()
    if found is None or status is None:
        raise AttributeValueError(f"There is no VM {guest.vm_id} on node {guest.node}.", ("id",))
    described = describe(found)
    return {
        **config,
        **described,
        "name": described["name"] or "",
        "description": described["description"] or "",
        "tags": described["tags"] or [],
        "template": bool(described["template"]),
        "status": str(status.get("status") or ""),
    }


DATA_SOURCE = DataSource(
    names=("proxmox_vm", "proxmox_virtual_environment_vm2"),
    read=_read,
    rules={"timeouts.read": RULES["timeouts.read"]},
)
