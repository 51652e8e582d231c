"""What the cluster says of itself: its log, `/cluster/log`, and its figures, `/cluster/metrics/export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.resources.nodes import uptime, used_memory
from stackyard.lab.routing import route
from stackyard.lab.rows import guest_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.lab.call import Call

__all__ = ["export_metrics", "read_log"]

_DEFAULT_MOST = 50
# Figures are gathered every ten seconds, and kept for half an hour.
_EVERY_S, _GENERATIONS = 10, 180
_MOST_ROWS = 200_000
_GUEST = {"cpus": "cpu_max", "maxmem": "mem_total", "maxdisk": "disk_total", "uptime": "uptime"}
_RUNNING = {"cpu": "cpu_current", "mem": "mem_used"}
_DERIVED = {"diskread": "disk_read", "diskwrite": "disk_write", "netin": "net_in", "netout": "net_out"}


@route("GET /cluster/log")
def read_log(call: Call) -> Any:
    """Answer the last messages, the newest first; without the privilege only those about the caller."""
    entries = call.world.log.newest_first(call.world.tasks, int(call.params.get("max", _DEFAULT_MOST)))
    if call.may("/", "Sys.Syslog"):
        return entries
    return [entry for entry in entries if entry["user"] == call.authid]


@route("GET /cluster/metrics/export")
def export_metrics(call: Call) -> Any:
    """Answer the figures of nodes, guests and storages as metrics, those of the last half hour if asked."""
    cluster, params, now = call.world.cluster, call.params, call.now()
    named = split_list(params.get("node-list", ""))
    unknown = [node for node in named if node not in cluster.nodes()]
    if unknown:
        raise PveError(f"Requested node-list contains unknown nodes - {', '.join(unknown)}")
    nodes = named or ([cluster.local()] if params.get("local-only") else list(cluster.nodes()))
    rows = [row for node in nodes if cluster.is_online(node) for row in _rows(call, node)]
    start = params.get("start-time")
    generations = 0
    if params.get("history"):
        generations = _GENERATIONS if start is None else max(0, (now - int(start)) // _EVERY_S)
    most = min(generations, _GENERATIONS, _MOST_ROWS // max(1, len(rows)))
    latest = now - now % _EVERY_S
    moments = [latest - number * _EVERY_S for number in range(most, -1, -1)]
    data = [{**row, "timestamp": moment} for moment in moments for row in rows]
    return {"data": [row for row in data if start is None or row["timestamp"] > int(start)]}


def _rows(call: Call, node: str) -> Iterator[dict[str, Any]]:
    world = call.world
    document, ident = world.cluster.nodes()[node], f"node/{node}"
    rootfs = int(document["rootfs"])
    figures = {
        **dict.fromkeys(("cpu_avg1", "cpu_avg5", "cpu_avg15"), 0.1),
        "uptime": uptime(world, node),
        "cpu_max": document["cpus"],
        "cpu_current": 0.01,
        "cpu_iowait": 0,
        "mem_total": document["memory"],
        "mem_used": used_memory(world, node),
        "swap_total": 8 * 2**30,
        "swap_used": 0,
        "disk_total": rootfs,
        "disk_used": rootfs // 20,
    }
    for metric, value in figures.items():
        yield _row(ident, metric, value)
    for metric in ("net_in", "net_out"):
        yield _row(ident, metric, 0, kind="derive")
    for guest in world.guests.on_node(node):
        yield from _guest_rows(f"{guest['type']}/{guest['vmid']}", guest_status(world, guest))
    for storage, config in world.storages.all().items():
        if world.storages.is_on(config, node) and not config.get("disable"):
            place = f"storage/{node}/{storage}"
            yield _row(place, "disk_total", world.storages.total(storage, node))
            yield _row(place, "disk_used", world.storages.used(storage, node))


def _guest_rows(ident: str, status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, metric in _GUEST.items():
        yield _row(ident, metric, status[key])
    if status["status"] == "running":
        for key, metric in _RUNNING.items():
            yield _row(ident, metric, status[key])
        for key, metric in _DERIVED.items():
            yield _row(ident, metric, status[key], kind="derive")


def _row(ident: str, metric: str, value: float, *, kind: str = "gauge") -> dict[str, Any]:
    return {"id": ident, "metric": metric, "value": value, "type": kind}
