"""Services of Ceph: setting it up, monitors, managers, metadata servers, and starting and stopping them."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.cluster.ceph import SERVICES, VERSION, VERSION_TEXT, Ceph
from pvelab.world.generate import new_uuid

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = [
    "create_manager",
    "create_metadata_server",
    "create_monitor",
    "list_managers",
    "list_metadata_servers",
    "list_monitors",
    "remove_manager",
    "remove_metadata_server",
    "remove_monitor",
    "restart_services",
    "set_up",
    "start_services",
    "stop_services",
]


@route("POST /nodes/{node}/ceph/init")
def set_up(call: Call) -> Any:
    """Write the first configuration; one that is there keeps its identity."""
    params, ceph = call.params, Ceph(call.world)
    present = ceph.config or {}
    default = f"{ipaddress.ip_network(ceph.address(call.node) + '/16', strict=False)}"
    network = str(params.get("network") or present.get("network") or default)
    config = {
        "fsid": new_uuid(),
        "size": params.get("size", 3),
        "min_size": params.get("min_size", 2),
        "pg_bits": params.get("pg_bits", 6),
        "auth": "none" if params.get("disable_cephx") else "cephx",
        "created": call.now(),
        **present,
        "network": network,
        "cluster_network": str(params.get("cluster-network") or present.get("cluster_network") or network),
    }
    call.world.cluster.require_writable("ceph.conf")
    call.store.put("ceph", "config", config)


@route("GET /nodes/{node}/ceph/mon")
def list_monitors(call: Call) -> Any:
    """List the monitors."""
    ceph = Ceph(call.world)
    ceph.require_set_up()
    quorum, rows = ceph.quorum(), []
    for rank, (name, service) in enumerate(sorted(ceph.services("mon").items())):
        row = _row(ceph, name, service, state="running" if ceph.runs(service) else "stopped")
        rows.append(row | {"rank": rank, "quorum": int(name in quorum)})
    return rows


@route("GET /nodes/{node}/ceph/mgr")
def list_managers(call: Call) -> Any:
    """List the managers; the first that runs is active."""
    ceph = Ceph(call.world)
    ceph.require()
    rows, active = [], False
    for name, service in sorted(ceph.services("mgr").items()):
        state = ("standby" if active else "active") if ceph.runs(service) else "stopped"
        active = active or state == "active"
        rows.append(_row(ceph, name, service, state=state))
    return rows


@route("GET /nodes/{node}/ceph/mds")
def list_metadata_servers(call: Call) -> Any:
    """List the metadata servers; all wait, as there are no file systems."""
    ceph = Ceph(call.world)
    ceph.require()
    rows = []
    for name, service in sorted(ceph.services("mds").items()):
        row = _row(ceph, name, service, state="up:standby" if ceph.runs(service) else "stopped")
        rows.append(row | {"standby_replay": int(bool(service.get("hotstandby")))})
    return rows


def _row(ceph: Ceph, name: str, service: Document, *, state: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "host": service["node"],
        "addr": f"{service['addr']}:6789/0",
        "state": state,
        "direxists": 1,
        "service": 1,
    }
    if ceph.runs(service):
        row |= {"ceph_version": VERSION_TEXT, "ceph_version_short": VERSION}
    return row


@route("POST /nodes/{node}/ceph/mon/{monid}")
def create_monitor(call: Call) -> Any:
    """Make a monitor, in a task; the first one brings a manager along."""
    ceph, node = Ceph(call.world), call.node
    ceph.require_set_up()
    name = str(call.params.get("monid") or node)
    address = _address(call, ceph)
    _check_new_monitor(ceph, name, address)

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            _check_new_monitor(ceph, name, address)
            first = not ceph.services("mon")
            task.log("creating new monitor keyring" if first else "importing contents of the keyring")
            _add(call, "mon", name, address)
            if first:
                task.log("creating manager directory '/var/lib/ceph/mgr'")
                _add(call, "mgr", node, ceph.address(node))

    return call.start_task("cephcreatemon", f"mon.{name}", work)


def _check_new_monitor(ceph: Ceph, name: str, address: str) -> None:
    monitors = ceph.services("mon")
    if any(service["addr"] == address for service in monitors.values()):
        raise PveError(f"monitor address '{address}' already in use")
    if name in monitors:
        raise PveError(f"monitor '{name}' already exists")


def _address(call: Call, ceph: Ceph) -> str:
    own = ceph.address(call.node)
    given = split_list(str(call.params.get("mon-address", "")))
    for address in given:
        if address != own:
            raise PveError(f"Specified monitor IP '{address}' not configured or up on {call.node}!")
    return own


def _add(call: Call, kind: str, name: str, address: str, **more: Any) -> None:
    service = {"node": call.node, "addr": address, "running": 1, "created": call.now(), **more}
    call.store.put(SERVICES, f"{kind}.{name}", service)


@route("DELETE /nodes/{node}/ceph/mon/{monid}")
def remove_monitor(call: Call) -> Any:
    """Remove a monitor, in a task; the last one stays."""
    ceph, name = Ceph(call.world), str(call.params["monid"])
    ceph.require_set_up()
    _check_old_monitor(call, ceph, name)

    async def work(task: Task) -> None:
        await task.spend(Work.DELETE)
        with task.step():
            _check_old_monitor(call, ceph, name)
            call.store.delete(SERVICES, f"mon.{name}")

    return call.start_task("cephdestroymon", f"mon.{name}", work)


def _check_old_monitor(call: Call, ceph: Ceph, name: str) -> None:
    monitors = ceph.services("mon")
    if name not in monitors:
        raise PveError(f"no such monitor id '{name}'")
    if monitors[name]["node"] != call.node:
        raise PveError(f"monitor filesystem '/var/lib/ceph/mon/ceph-{name}' does not exist on this node")
    if len(monitors) <= 1:
        raise PveError("can't remove last monitor")


@route("POST /nodes/{node}/ceph/mgr/{id}")
def create_manager(call: Call) -> Any:
    """Make a manager, in a task."""
    return _create(call, "mgr", str(call.params.get("id") or call.node))


@route("POST /nodes/{node}/ceph/mds/{name}")
def create_metadata_server(call: Call) -> Any:
    """Make a metadata server, in a task."""
    name = str(call.params.get("name") or call.node)
    if name[0].isdecimal():
        raise PveError("ID of the MDS cannot start with a number!")
    return _create(call, "mds", name)


def _create(call: Call, kind: str, name: str) -> str:
    ceph = Ceph(call.world)
    ceph.require()

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            if name in ceph.services(kind):
                if kind == "mds":
                    raise PveError(f"MDS '{name}' already referenced in ceph config, abort!")
                raise PveError(f"ceph manager directory '/var/lib/ceph/{kind}/ceph-{name}' already exists")
            task.log(f"creating {kind} directory '/var/lib/ceph/{kind}/ceph-{name}'")
            more = {"hotstandby": 1} if call.params.get("hotstandby") else {}
            _add(call, kind, name, ceph.address(call.node), **more)

    return call.start_task(f"cephcreate{kind}", f"{kind}.{name}", work)


@route("DELETE /nodes/{node}/ceph/mgr/{id}")
def remove_manager(call: Call) -> Any:
    """Remove a manager, in a task."""
    return _remove(call, "mgr", str(call.params["id"]))


@route("DELETE /nodes/{node}/ceph/mds/{name}")
def remove_metadata_server(call: Call) -> Any:
    """Remove a metadata server, in a task."""
    return _remove(call, "mds", str(call.params["name"]))


def _remove(call: Call, kind: str, name: str) -> str:
    ceph = Ceph(call.world)
    ceph.require()

    async def work(task: Task) -> None:
        found = ceph.services(kind).get(name)
        if found is None or found["node"] != call.node:
            raise PveError(f"ceph {kind} directory '/var/lib/ceph/{kind}/ceph-{name}' not found")
        await task.spend(Work.DELETE)
        with task.step():
            call.store.delete(SERVICES, f"{kind}.{name}")

    return call.start_task(f"cephdestroy{kind}", f"{kind}.{name}", work)


@route("POST /nodes/{node}/ceph/start")
def start_services(call: Call) -> Any:
    """Start services of a node, in a task."""
    return _switch(call, "start", running=1)


@route("POST /nodes/{node}/ceph/stop")
def stop_services(call: Call) -> Any:
    """Stop services of a node, in a task."""
    return _switch(call, "stop", running=0)


@route("POST /nodes/{node}/ceph/restart")
def restart_services(call: Call) -> Any:
    """Restart services of a node, in a task."""
    return _switch(call, "restart", running=1)


def _switch(call: Call, command: str, *, running: int) -> str:
    if Ceph(call.world).config is None:
        raise PveError("no configuration")
    service = str(call.params.get("service", "ceph"))

    async def work(task: Task) -> None:
        await task.spend(Work.RELOAD)
        with task.step():
            if not _apply(call, service, running=running) and "." in service:
                kind, _, name = service.partition(".")
                unit = f"ceph-{kind}@{name}"
                raise PveError(f"command '/bin/systemctl {command} {unit}' failed: exit code 5")

    return call.start_task(f"srv{command}", service, work)


def _apply(call: Call, service: str, *, running: int) -> int:
    """Set the services (and OSDs) of a node that a name represents; return how many there are."""
    kind, _, name = service.partition(".")
    found = 0
    for key, document in list(call.store.items(SERVICES).items()):
        own = key.partition(".")
        if document["node"] == call.node and kind in ("ceph", own[0]) and name in ("", own[2]):
            call.store.put(SERVICES, key, {**document, "running": running})
            found += 1
    for key, document in list(call.store.items("ceph_osds").items()):
        if document["node"] == call.node and kind in ("ceph", "osd") and name in ("", key):
            call.store.put("ceph_osds", key, {**document, "running": running})
            found += 1
    return found
