"""The disks themselves: `/nodes/{node}/disks`, their list, their health, their partition tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.latency import Work
from stackyard.lab.physical import SYSTEM_DISK, Physical
from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task

__all__ = ["index_disks", "init_disk", "list_disks", "read_smart", "wipe_disk"]

_SPEEDS = {"ssd": 0, "nvme": 0, "hdd": 7200, "usb": -1}
_WEAROUT = "N/A"
# What the system disk of a fresh node is divided into: boot code, EFI, the volume group.
_PARTITIONS = ((1, 1007 * 1024, "BIOS boot"), (2, 2**30, "EFI"))
_ATTRIBUTES = (
    (5, "Reallocated_Sector_Ct", "PO--CK", 100, "0"),
    (9, "Power_On_Hours", "-O--CK", 98, "8760"),
    (12, "Power_Cycle_Count", "-O--CK", 99, "24"),
    (194, "Temperature_Celsius", "-O---K", 69, "31"),
    (197, "Current_Pending_Sector", "-O--CK", 100, "0"),
    (199, "UDMA_CRC_Error_Count", "-OSRCK", 100, "0"),
)
_TEXT = """
SMART/Health Information (NVMe Log 0x02)
Critical Warning:                   0x00
Temperature:                        34 Celsius
Available Spare:                    100%
Percentage Used:                    1%
Power Cycles:                       24
Power On Hours:                     8760
"""


@route("GET /nodes/{node}/disks")
def index_disks(_call: Call) -> Any:
    """List what there is of disks."""
    names = ("directory", "initgpt", "list", "lvm", "lvmthin", "smart", "wipedisk", "zfs")
    return [{"name": name} for name in names]


@route("GET /nodes/{node}/disks/list")
def list_disks(call: Call) -> Any:
    """List the disks, all of them or the unused ones."""
    wanted, rows = call.params.get("type"), []
    for path, disk in sorted(Physical(call.store, call.node).disks().items()):
        used = disk.get("used")
        if wanted == "unused" and used:
            continue
        if wanted == "journal_disks" and ("osds" in disk or (used and used != "LVM")):
            continue
        rows.append(_row(path, disk, smart=not call.params.get("skipsmart")))
        if call.params.get("include-partitions"):
            rows += _partitions(path, disk)
    return rows


@route("GET /nodes/{node}/disks/smart")
def read_smart(call: Call) -> Any:
    """Answer the health of a disk."""
    disk = Physical(call.store, call.node).require(_path(call))
    answer: dict[str, Any] = {"health": disk.get("health", "PASSED")}
    if call.params.get("healthonly"):
        return answer
    if disk["type"] == "nvme":
        return answer | {"type": "text", "text": _TEXT, "wearout": 99}
    attributes = [
        {
            "id": f"{number:3d}",
            "name": name,
            "flags": flags,
            "value": value,
            "normalized": value,
            "worst": value,
            "threshold": 0,
            "fail": "-",
            "raw": raw,
        }
        for number, name, flags, value, raw in _ATTRIBUTES
    ]
    return answer | {"type": "ata", "attributes": attributes}


@route("POST /nodes/{node}/disks/initgpt")
def init_disk(call: Call) -> Any:
    """Write a partition table to an unused disk, in a task."""
    physical, path = Physical(call.store, call.node), _path(call)
    disk = physical.require(path)
    if disk.get("used"):
        raise PveError(f"disk {path} already in use")

    async def work(task: Task) -> None:
        await task.spend(Work.CONFIG)
        with task.step():
            physical.require_unused(path)
            physical.change([path], gpt=1)
            task.log("The operation has completed successfully.")

    return call.start_task("diskinit", path.removeprefix("/dev/"), work)


@route("PUT /nodes/{node}/disks/wipedisk")
def wipe_disk(call: Call) -> Any:
    """Remove everything from a disk that nothing holds any more, in a task."""
    physical, path = Physical(call.store, call.node), _path(call)
    disk = physical.require(path)
    if path == SYSTEM_DISK or disk.get("by"):
        mounted = disk.get("used") in ("ext4", "xfs")
        what = "is mounted" if mounted else "has a holder"
        raise PveError(f"disk/partition '{path}' {what}")

    async def work(task: Task) -> None:
        task.log(f"wiping {path}")
        await task.spend(Work.CONFIG)
        with task.step():
            physical.change([path], used=None, by=None, gpt=None)

    return call.start_task("wipedisk", path.removeprefix("/dev/"), work)


def _path(call: Call) -> str:
    return str(call.params["disk"])


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
        "by_id_link": f"/dev/disk/by-id/wwn-{disk['wwn']}",
    }
    if disk.get("used"):
        row["used"] = "mounted" if disk["used"] in ("ext4", "xfs") and disk.get("by") else disk["used"]
    if row.get("used") == "mounted":
        row["mounted"] = 1
    return row


def _partitions(path: str, disk: dict[str, Any]) -> list[dict[str, Any]]:
    separator = "p" if path[-1].isdecimal() else ""
    if path == SYSTEM_DISK:
        rest = int(disk["size"]) - sum(size for _, size, _ in _PARTITIONS)
        found = [*_PARTITIONS, (3, rest, "LVM")]
    elif disk.get("used") in ("ext4", "xfs"):
        found = [(1, int(disk["size"]) - 2**20, str(disk["used"]))]
    else:
        found = []
    return [
        {
            "devpath": f"{path}{separator}{number}",
            "parent": path,
            "size": size,
            "used": used,
            "gpt": 1,
            "type": "partition",
            "osdid": -1,
            "osdid-list": None,
        }
        for number, size, used in found
    ]
