"""Moving containers between nodes, which no provider does: for both it would be another container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.path.run import Run

__all__ = ["GuestMove", "migrate_containers"]

_TASK_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestMove:
    """A container to move.

    Attributes:
        name: What it is called.
        vm_id: Its id.
        target: The node that it goes to.
    """

    name: str
    vm_id: int
    target: str


async def migrate_containers(run: Run, migrations: Iterable[GuestMove]) -> None:
    """Move containers, one after the other; one that is there already is left alone.

    A running container is stopped, moved and started again: Proxmox has no live migration for it.

    Raises:
        ProxmoxError: One could not be moved; those before it were.
    """
    for migration in migrations:
        rows = await run.client.get("/cluster/resources", {"type": "vm"})
        row = next((row for row in rows if int(row["vmid"]) == migration.vm_id), None)
        if row is None or row["node"] == migration.target:
            continue
        text = f"Moving {migration.name} from {row['node']} to {migration.target}"
        with events.step(run.emit, f"migrate {migration.name}", text):
            path = f"/nodes/{quote(str(row['node']))}/lxc/{migration.vm_id}/migrate"
            upid = await run.client.post(path, {"target": migration.target, "restart": True})
            await proxmox.wait_for(run.client, str(upid), timeout_s=_TASK_S)
