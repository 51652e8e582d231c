"""The disks themselves: `/nodes/{node}/disks`, their list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route
from pvelab.world.storage.physical import SYSTEM_DISK, NodeDisks, link_by_id

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["index_disks", "list_disks"]

_SPEEDS = {"ssd": 0, "nvme": 0, "hdd": 7200, "usb": -1}
_WEAROUT = "N/A"
# What the system disk of a fresh node is divided into: boot code, EFI, the volume group.
_PARTITIONS = ((1, 1007 * 1024, "BIOS boot"), (2, 2**30, "EFI"))


@route("GET /nodes/{node}/disks")
def index_disks(_call: Call) -> Any:
    """List what there is of disks."""
    names = ("directory", "initgpt", "list", "lvm", "lvmthin", "smart", "wipedisk", "zfs")
    return [{"name": name} for name in names]


@route("GET /nodes/{node}/disks/list")
def list_disks(call: Call) -> Any:
    """List the disks, all of them or the unused ones."""
    wanted, rows = call.params.get("type"), []
    for path, disk in sorted(NodeDisks(call.store, call.node).disks().items()):
        used = disk.get("used")
        if wanted == "unused" and used:
            continue
        if wanted == "journal_disks" and ("osds" in disk or (used and used != "LVM")):
            continue
        rows.append(_row(path, disk, smart=not call.params.get("skipsmart")))
        if call.params.get("include-partitions"):
            rows += _partitions(path, disk)
    return rows


def _row(path: str, disk: dict[str, Any], *, smart: bool) -> dict[str, Any]:
    osds = [int(osd) for osd in disk.get("osds", ())]
    row = {
        "devpath": path,
        "size": disk["size"],
        "type": disk["type"],
        "model": disk["model"],
        "vendor": disk["vendor"],
        "serial": disk["serial"],
        "wwn": disk["wwn"],
        "rpm": _SPEEDS.get(str(disk["type"]), -1),
        "gpt": int(disk.get("gpt", 0)),
        "wearout": _WEAROUT if disk["type"] == "hdd" or not smart else 99,
        "health": disk.get("health", "PASSED") if smart else "UNKNOWN",
        "osdid": osds[0] if osds else -1,
        "osdid-list": osds or None,
        "by_id_link": link_by_id(disk),
    }
    return row | ({"used": disk["used"]} if disk.get("used") else {})


def _partitions(path: str, disk: dict[str, Any]) -> list[dict[str, Any]]:
    if path != SYSTEM_DISK:
        return []
    rest = int(disk["size"]) - sum(size for _, size, _ in _PARTITIONS)
    return [
        {
            "devpath": f"{path}p{number}",
            "parent": path,
            "size": size,
            "used": used,
            "gpt": 1,
            "type": "partition",
            "osdid": -1,
            "osdid-list": None,
        }
        for number, size, used in (*_PARTITIONS, (3, rest, "LVM"))
    ]
