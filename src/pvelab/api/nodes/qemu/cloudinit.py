"""The cloud-init drive of a VM: `/nodes/{node}/qemu/{vmid}/cloudinit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, userdata
from pvelab.api.nodes.qemu.hotplug import CLOUDINIT_OPTIONS
from pvelab.api.nodes.qemu.start_checks import require_snippets
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["dump_cloudinit", "read_cloudinit", "regenerate_cloudinit"]

_MASKED = "**********"


@route("GET /nodes/{node}/qemu/{vmid}/cloudinit")
def read_cloudinit(call: Call) -> Any:
    """List what the drive was created from, and what has changed since."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    config, recorded = guest["config"], guest.get("cloudinit") or {}
    rows: list[dict[str, Any]] = []
    for key, record in recorded.items():
        if "added" in record:
            rows.append({"key": key, "pending": _mask_password(key, config.get(key))})
    for key in sorted(config):
        if not CLOUDINIT_OPTIONS.fullmatch(key) or "added" in recorded.get(key, {}):
            continue
        row = {"key": key, "value": _mask_password(key, config[key])}
        if key in recorded:
            row |= {
                "value": _mask_password(key, recorded[key]["value"]),
                "pending": _mask_password(key, config[key]),
            }
        rows.append(row)
    rows += [{"key": key, "delete": 1} for key in recorded if key not in config]
    return rows


@route("PUT /nodes/{node}/qemu/{vmid}/cloudinit")
async def regenerate_cloudinit(call: Call) -> Any:
    """Make the drive again from the present configuration."""
    world = call.world
    async with call.guest_lock("qemu", call.vmid):
        with call.transaction():
            guest = world.guests.require("qemu", call.node, call.vmid)
            world.guests.check_unlocked(guest)
            has_drive = any(
                drives.is_cloudinit(drives.parse_drive(world.facts, key, str(guest["config"][key])))
                for key in drives.drive_keys(guest["config"])
            )
            require_snippets(world, guest, guest["config"])
            if has_drive and guest.get("cloudinit"):
                world.guests.update(guest, cloudinit={})


@route("GET /nodes/{node}/qemu/{vmid}/cloudinit/dump")
def dump_cloudinit(call: Call) -> Any:
    """Answer what the drive says: the `user`, `network` or `meta` data."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    return userdata.render(
        call.world,
        call.node,
        call.vmid,
        guest["config"],
        part=call.params["type"],
        masked=not call.may(f"/vms/{call.vmid}", "VM.Config.Cloudinit"),
    )


def _mask_password(key: str, value: Any) -> Any:
    return _MASKED if key == "cipassword" else value
