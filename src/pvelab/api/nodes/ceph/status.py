"""What a Ceph cluster tells of itself: its status."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route
from pvelab.world.cluster.ceph import RELEASE, Ceph

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["index_ceph", "index_cluster", "read_status"]


@route("GET /nodes/{node}/ceph")
def index_ceph(_call: Call) -> Any:
    """List what there is of Ceph on a node."""
    names = ("cmd-safety", "cfg", "crush", "fs", "init", "log", "mds", "mgr", "mon", "osd", "pool")
    return [{"name": name} for name in (*names, "restart", "rules", "start", "status", "stop")]


@route("GET /cluster/ceph")
def index_cluster(_call: Call) -> Any:
    """List what there is of Ceph in the cluster."""
    return [{"name": name} for name in ("flags", "metadata", "status")]


@route("GET /cluster/ceph/status", "GET /nodes/{node}/ceph/status")
def read_status(call: Call) -> Any:
    """Answer how the cluster is."""
    ceph = Ceph(call.world)
    config = ceph.require()
    state, checks = ceph.health()
    return {
        "fsid": config["fsid"],
        "health": {"status": state, "checks": checks, "mutes": []},
        "election_epoch": 4 + 2 * len(ceph.services("mon")),
        "quorum": list(range(len(ceph.quorum()))),
        "quorum_names": ceph.quorum(),
        "quorum_age": max(0, call.now() - int(config["created"])),
        "monmap": _monitors(ceph, config),
        "osdmap": _osds(ceph),
        "pgmap": _groups(ceph),
        "fsmap": _metadata_servers(ceph),
        "mgrmap": _managers(ceph),
        "servicemap": {"epoch": 1, "modified": _stamp(int(config["created"])), "services": {}},
        "progress_events": {},
    }


def _monitors(ceph: Ceph, config: Any) -> dict[str, Any]:
    created = _stamp(int(config["created"]))
    rows = []
    for rank, (name, service) in enumerate(sorted(ceph.services("mon").items())):
        address = str(service["addr"])
        vector = [
            {"type": kind, "addr": f"{address}:{port}", "nonce": 0}
            for kind, port in (("v2", 3300), ("v1", 6789))
        ]
        rows.append(
            {
                "rank": rank,
                "name": name,
                "public_addrs": {"addrvec": vector},
                "addr": f"{address}:6789/0",
                "public_addr": f"{address}:6789/0",
                "priority": 0,
                "weight": 0,
            }
        )
    return {
        "epoch": len(rows),
        "fsid": config["fsid"],
        "created": created,
        "modified": created,
        "min_mon_release_name": RELEASE,
        "num_mons": len(rows),
        "mons": rows,
    }


def _osds(ceph: Ceph) -> dict[str, Any]:
    osds = ceph.osds()
    return {
        "epoch": 1 + 4 * len(osds) + 3 * len(ceph.pools()),
        "num_osds": len(osds),
        "num_up_osds": sum(1 for osd in osds.values() if ceph.runs(osd)),
        "num_in_osds": sum(1 for osd in osds.values() if osd["in"]),
        "num_remapped_pgs": 0,
    }


def _groups(ceph: Ceph) -> dict[str, Any]:
    states, total, used = ceph.groups(), ceph.total(), ceph.used()
    data = sum(ceph.pool_used(name) for name in ceph.pools())
    return {
        "pgs_by_state": [{"state_name": name, "count": count} for name, count in states.items()],
        "num_pgs": sum(states.values()),
        "num_pools": len(ceph.pools()),
        "num_objects": data // (4 * 2**20),
        "data_bytes": data,
        "bytes_used": used,
        "bytes_avail": max(0, total - used),
        "bytes_total": total,
    }


def _metadata_servers(ceph: Ceph) -> dict[str, Any]:
    """Return the servers, none of them active: there are no file systems."""
    running = sum(1 for mds in ceph.services("mds").values() if ceph.runs(mds))
    return {"epoch": 1, "up": 0, "in": 0, "max": 0, "by_rank": [], "up:standby": running}


def _managers(ceph: Ceph) -> dict[str, Any]:
    running = [name for name, mgr in sorted(ceph.services("mgr").items()) if ceph.runs(mgr)]
    return {
        "available": bool(running),
        "active_name": running[0] if running else "",
        "num_standbys": max(0, len(running) - 1),
        "standbys": [{"name": name} for name in running[1:]],
        "modules": ["iostat", "nfs"],
        "services": {},
    }


def _stamp(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
