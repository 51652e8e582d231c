"""Disks of a Ceph cluster: `/nodes/{node}/ceph/osd`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.cluster.ceph import OSDS, VERSION, VERSION_TEXT, Ceph
from pvelab.world.generate import new_uuid
from pvelab.world.storage.physical import NodeDisks

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = ["create_osd", "index_osd", "list_osds", "put_in", "remove_osd", "scrub", "take_out"]

_TIB = 2**40


@route("GET /nodes/{node}/ceph/osd")
def list_osds(call: Call) -> Any:
    """Answer the hosts and their disks as a tree."""
    ceph = Ceph(call.world)
    ceph.require()
    hosts: dict[str, list[dict[str, Any]]] = {}
    osds = ceph.osds()
    share = ceph.used() / ceph.total() if ceph.total() else 0.0
    groups = sum(ceph.groups().values())
    for number, osd in osds.items():
        hosts.setdefault(str(osd["node"]), []).append(_leaf(ceph, number, osd, share))
        hosts[str(osd["node"])][-1]["pgs"] = groups * 3 // max(1, len(osds))
    children = [
        {
            "id": str(-(3 + 2 * position)),
            "name": host,
            "type": "host",
            "version": VERSION,
            "leaf": 0,
            "children": leaves,
        }
        for position, (host, leaves) in enumerate(sorted(hosts.items()))
    ]
    root = {"id": "-1", "name": "default", "type": "root", "leaf": 0, "children": children}
    return {"root": {"leaf": 0, "children": [root]}}


def _leaf(ceph: Ceph, number: int, osd: Document, share: float) -> dict[str, Any]:
    size = int(osd["size"])
    return {
        # Numbers that were keys of a table before are texts in the answer, these among them.
        "id": str(number),
        "name": f"osd.{number}",
        "type": "osd",
        "host": osd["node"],
        "status": "up" if ceph.runs(osd) else "down",
        "in": int(osd["in"]),
        "crush_weight": round(size / _TIB, 5),
        "reweight": 1 if osd["in"] else 0,
        "device_class": osd["class"],
        "total_space": size,
        "bytes_used": int(size * share) if osd["in"] else 0,
        "percent_used": share * 100 if osd["in"] else 0,
        "commit_latency_ms": 0,
        "apply_latency_ms": 0,
        "osdtype": "bluestore",
        "blfsdev": osd["device"],
        "dbdev": osd.get("db"),
        "waldev": osd.get("wal"),
        "ceph_version": VERSION_TEXT,
        "ceph_version_short": VERSION,
        "leaf": 1,
    }


@route("POST /nodes/{node}/ceph/osd")
def create_osd(call: Call) -> Any:
    """Make OSDs of an unused disk, in a task."""
    params, ceph, physical = call.params, Ceph(call.world), NodeDisks(call.store, call.node)
    ceph.require()
    device, count = str(params["dev"]), int(params.get("osds-per-device", 1))
    extra = {kind: str(params[f"{kind}_dev"]) for kind in ("db", "wal") if params.get(f"{kind}_dev")}
    if count > 1:
        for kind in extra:
            text = "cannot be combined with multiple OSDs per device"
            raise bad_parameter(f"{kind}_dev", text)
    for kind, path in extra.items():
        if path == device:
            raise bad_parameter(f"{kind}_dev", f"cannot chose '{path}' for more than one type.")
    disk = physical.require_unused(device)
    for kind, path in extra.items():
        _check_extra(physical, kind, path)

    async def work(task: Task) -> None:
        task.log(f"create OSD on {device} (bluestore)")
        await task.spend(Work.CREATE)
        with task.step():
            physical.require_unused(device)
            numbers = []
            for _ in range(count):
                numbers.append(_add(call, device, int(disk["size"]) // count, extra))
                task.log(f"--> ceph-volume lvm create successful for: osd.{numbers[-1]}")
            physical.change([device], used="LVM", by=f"ceph-{new_uuid()}", osds=numbers)
            for path in extra.values():
                physical.change([path], used="LVM", by=f"ceph-{new_uuid()}")
            ceph.refresh_capacities()

    return call.start_task("cephcreateosd", device.removeprefix("/dev/"), work)


def _check_extra(physical: NodeDisks, kind: str, path: str) -> None:
    """Refuse a disk for the database or the log that something else is on."""
    disk = physical.disks().get(path)
    if disk is None:
        raise PveError(f"unable to get device info for '{path}' for type {kind}_dev")
    if disk.get("used") and disk["used"] != "LVM":
        raise PveError(f"device '{path}' is already in use and has no LVM on it")


def _add(call: Call, device: str, size: int, extra: dict[str, str]) -> int:
    taken = Ceph(call.world).osds()
    number = next(number for number in range(len(taken) + 1) if number not in taken)
    disk = NodeDisks(call.store, call.node).require(device)
    document = {
        "node": call.node,
        "device": device,
        "size": size,
        "class": str(call.params.get("crush-device-class") or disk["type"]),
        "in": 1,
        "running": 1,
        "encrypted": int(bool(call.params.get("encrypted"))),
        "uuid": new_uuid(),
        "vg": f"ceph-{new_uuid()}",
        "created": call.now(),
        **extra,
    }
    call.store.put(OSDS, str(number), document)
    return number


@route("DELETE /nodes/{node}/ceph/osd/{osdid}")
def remove_osd(call: Call) -> Any:
    """Remove an OSD that is out and stopped, in a task."""
    ceph, number = Ceph(call.world), int(call.params["osdid"])
    ceph.require()
    osd = ceph.require_osd(number)
    if osd["node"] != call.node:
        raise PveError(f"OSD osd.{number} does not belong to node {call.node}!")
    if osd["in"]:
        raise PveError("osd is in use (in == 1)")
    if ceph.runs(osd):
        raise PveError("osd is still running (up == 1)")

    async def work(task: Task) -> None:
        task.log(f"destroy OSD osd.{number}")
        task.log(f"Remove osd.{number} from the CRUSH map")
        await task.spend(Work.DELETE)
        with task.step():
            call.store.delete(OSDS, str(number))
            _give_back(call, osd, number)
            task.log(f"Remove OSD osd.{number}")
            ceph.refresh_capacities()

    return call.start_task("cephdestroyosd", f"osd.{number}", work)


def _give_back(call: Call, osd: Document, number: int) -> None:
    physical, device = NodeDisks(call.store, call.node), str(osd["device"])
    left = [other for other in physical.disks().get(device, {}).get("osds", ()) if other != number]
    if left:
        physical.change([device], osds=left)
    elif call.params.get("cleanup"):
        physical.change([device], used=None, by=None, osds=None, gpt=None)
    else:
        # What was on the disk is still there, but nothing holds it any more.
        physical.change([device], by=None, osds=None)
    for kind in ("db", "wal"):
        if osd.get(kind) and call.params.get("cleanup"):
            physical.change([str(osd[kind])], used=None, by=None)


@route("GET /nodes/{node}/ceph/osd/{osdid}")
def index_osd(_call: Call) -> Any:
    """List what there is of an OSD."""
    return [{"name": name} for name in ("metadata", "lv-info")]


@route("POST /nodes/{node}/ceph/osd/{osdid}/in")
def put_in(call: Call) -> Any:
    """Let an OSD take data."""
    _mark(call, inside=1)


@route("POST /nodes/{node}/ceph/osd/{osdid}/out")
def take_out(call: Call) -> Any:
    """Let an OSD give its data to others."""
    _mark(call, inside=0)


def _mark(call: Call, *, inside: int) -> None:
    ceph, number = Ceph(call.world), int(call.params["osdid"])
    ceph.require()
    osd = ceph.require_osd(number)
    call.store.put(OSDS, str(number), {**osd, "in": inside})
    ceph.refresh_capacities()


@route("POST /nodes/{node}/ceph/osd/{osdid}/scrub")
def scrub(call: Call) -> Any:
    """Let an OSD check its data."""
    ceph = Ceph(call.world)
    ceph.require()
    ceph.require_osd(int(call.params["osdid"]))
