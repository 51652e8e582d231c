"""What a Ceph cluster tells of itself: status, flags, metadata, rules, the map, its configuration and log."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from stackyard.lab.ceph import RELEASE, VERSION, VERSION_TEXT, Ceph
from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task

__all__ = [
    "FLAGS",
    "index_ceph",
    "index_cluster",
    "index_config",
    "list_flags",
    "list_rules",
    "list_values",
    "read_config",
    "read_database",
    "read_flag",
    "read_log",
    "read_map",
    "read_metadata",
    "read_status",
    "set_flag",
    "set_flags",
]

FLAGS = (
    *("nobackfill", "nodeep-scrub", "nodown", "noin", "noout", "norebalance", "norecover", "noscrub"),
    *("notieragent", "noup", "pause"),
)
_DEFAULT_LIMIT = 50


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
        "fsmap": _file_systems(ceph),
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


def _file_systems(ceph: Ceph) -> dict[str, Any]:
    running = [name for name, mds in sorted(ceph.services("mds").items()) if ceph.runs(mds)]
    active = running[: len(ceph.file_systems())]
    ranks = [
        {"filesystem_id": number + 1, "rank": 0, "name": name, "status": "up:active", "gid": 4000 + number}
        for number, name in enumerate(active)
    ]
    return {
        "epoch": 1 + len(ceph.file_systems()),
        "up": len(active),
        "in": len(active),
        "max": len(ceph.file_systems()),
        "by_rank": ranks,
        "up:standby": len(running) - len(active),
    }


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


@route("GET /cluster/ceph/flags")
def list_flags(call: Call) -> Any:
    """List the flags with their values."""
    ceph = Ceph(call.world)
    ceph.require()
    flags = ceph.flags()
    return [{"name": name, "value": int(flags.get(name, False))} for name in FLAGS]


@route("GET /cluster/ceph/flags/{flag}")
def read_flag(call: Call) -> Any:
    """Answer whether a flag is set."""
    ceph = Ceph(call.world)
    ceph.require()
    return int(ceph.flags().get(str(call.params["flag"]), False))


@route("PUT /cluster/ceph/flags/{flag}")
def set_flag(call: Call) -> Any:
    """Set or remove a flag."""
    Ceph(call.world).require()
    _set(call, {str(call.params["flag"]): bool(call.params["value"])})


@route("PUT /cluster/ceph/flags")
def set_flags(call: Call) -> Any:
    """Set and remove several flags, in a task."""
    Ceph(call.world).require()
    wanted = {name: bool(call.params[name]) for name in FLAGS if name in call.params}

    async def work(task: Task) -> None:
        with task.step():
            for name, value in wanted.items():
                task.log(f"{'' if value else 'un'}setting {name}")
            _set(call, wanted)

    return call.start_task("cephsetflags", "", work)


def _set(call: Call, wanted: dict[str, bool]) -> None:
    present = {**(call.store.get("ceph", "flags") or {}), **wanted}
    call.store.put("ceph", "flags", {key: 1 for key, value in present.items() if value})


@route("GET /cluster/ceph/metadata")
def read_metadata(call: Call) -> Any:
    """Answer what each service is and which version it runs."""
    ceph = Ceph(call.world)
    ceph.require()
    nodes = call.world.cluster.nodes()
    version = {"str": VERSION, "parts": VERSION.split(".")}
    answer: dict[str, Any] = {
        "node": {
            name: {"version": version, "buildcommit": "c92aebb279828e9c3c1f5d24613efca272649e62"}
            for name in nodes
        }
    }
    for kind in ("mon", "mgr", "mds"):
        answer[kind] = {
            f"{name}@{service['node']}": {
                "name": name,
                "hostname": service["node"],
                "addrs": service["addr"],
                "ceph_release": RELEASE,
                "ceph_version": VERSION_TEXT,
                "ceph_version_short": VERSION,
                "service": 1,
                "direxists": 1,
            }
            for name, service in sorted(ceph.services(kind).items())
        }
    answer["osd"] = [
        {
            "id": number,
            "hostname": osd["node"],
            "ceph_release": RELEASE,
            "ceph_version": VERSION_TEXT,
            "ceph_version_short": VERSION,
            "osd_objectstore": "bluestore",
            "devices": str(osd["device"]).removeprefix("/dev/"),
            "front_addr": f"{ceph.address(str(osd['node']))}:6800/{number}",
            "back_addr": f"{ceph.address(str(osd['node']))}:6801/{number}",
            "mem_total_kb": int(nodes[str(osd["node"])]["memory"]) // 1024,
            "mem_swap_kb": 8 * 2**20,
        }
        for number, osd in ceph.osds().items()
    ]
    return answer


@route("GET /nodes/{node}/ceph/rules")
def list_rules(call: Call) -> Any:
    """List the rules by which data is placed."""
    ceph = Ceph(call.world)
    ceph.require()
    return [{"name": name} for name in ceph.rules()]


@route("GET /nodes/{node}/ceph/crush")
def read_map(call: Call) -> Any:
    """Print the map of disks and hosts."""
    ceph = Ceph(call.world)
    ceph.require()
    lines = ["# begin crush map", "tunable choose_total_tries 50", "", "# devices"]
    lines += [f"device {number} osd.{number} class {osd['class']}" for number, osd in ceph.osds().items()]
    lines += ["", "# types", "type 0 osd", "type 1 host", "type 11 root", "", "# buckets"]
    hosts: dict[str, list[tuple[int, float]]] = {}
    for number, osd in ceph.osds().items():
        hosts.setdefault(str(osd["node"]), []).append((number, int(osd["size"]) / 2**40))
    for position, (host, osds) in enumerate(sorted(hosts.items())):
        items = [f"\titem osd.{number} weight {weight:.5f}" for number, weight in osds]
        lines += [f"host {host} {{", f"\tid -{3 + 2 * position}", "\talg straw2", *items, "}"]
    weights = {host: sum(weight for _, weight in osds) for host, osds in sorted(hosts.items())}
    items = [f"\titem {host} weight {weight:.5f}" for host, weight in weights.items()]
    lines += ["root default {", "\tid -1", "\talg straw2", *items, "}", "", "# rules"]
    for number, rule in enumerate(ceph.rules()):
        steps = ["step take default", "step chooseleaf firstn 0 type host", "step emit"]
        lines += [
            f"rule {rule} {{",
            f"\tid {number}",
            "\ttype replicated",
            *(f"\t{step}" for step in steps),
            "}",
        ]
    return "\n".join([*lines, "", "# end crush map", ""])


@route("GET /nodes/{node}/ceph/cfg")
def index_config(_call: Call) -> Any:
    """List the forms of the configuration."""
    return [{"name": name} for name in ("db", "raw", "value")]


@route("GET /nodes/{node}/ceph/cfg/raw")
def read_config(call: Call) -> Any:
    """Print the configuration file."""
    sections = _sections(call)
    return "".join(
        f"[{name}]\n" + "".join(f"\t {key} = {value}\n" for key, value in options.items()) + "\n"
        for name, options in sections.items()
    )


@route("GET /nodes/{node}/ceph/cfg/db")
def read_database(call: Call) -> Any:
    """List the settings that the monitors keep."""
    Ceph(call.world).require()
    return []


@route("GET /nodes/{node}/ceph/cfg/value")
def list_values(call: Call) -> Any:
    """Answer single settings of the configuration file."""
    sections, answer = _sections(call), dict[str, dict[str, str]]()
    for pair in split_list(str(call.params["config-keys"])):
        section, _, key = pair.partition(":")
        name = key.replace("-", "_")
        if name in sections.get(section, {}):
            answer.setdefault(section, {})[name] = sections[section][name]
    return answer


def _sections(call: Call) -> dict[str, dict[str, str]]:
    ceph = Ceph(call.world)
    config = ceph.require_set_up()
    auth = str(config["auth"])
    addresses = [str(service["addr"]) for _, service in sorted(ceph.services("mon").items())]
    common = {
        "auth_client_required": auth,
        "auth_cluster_required": auth,
        "auth_service_required": auth,
        "cluster_network": str(config["cluster_network"]),
        "fsid": str(config["fsid"]),
        "mon_allow_pool_delete": "true",
        **({"mon_host": " ".join(addresses)} if addresses else {}),
        "osd_pool_default_min_size": str(config["min_size"]),
        "osd_pool_default_size": str(config["size"]),
        "public_network": str(config["network"]),
    }
    sections = {"global": common, "client": {"keyring": "/etc/pve/priv/$cluster.$name.keyring"}}
    for name, service in sorted(ceph.services("mds").items()):
        sections[f"mds.{name}"] = {"host": name, "mds_standby_for_name": "pve"} if service else {}
    for name, service in sorted(ceph.services("mon").items()):
        sections[f"mon.{name}"] = {"public_addr": str(service["addr"])}
    return sections


@route("GET /nodes/{node}/ceph/log")
def read_log(call: Call) -> Any:
    """Answer a page of the cluster's log: what was made, and what its tasks did."""
    ceph = Ceph(call.world)
    if ceph.config is None:
        raise PveError("pveceph configuration not enabled")
    lines = []
    for task in reversed(list(call.world.tasks.newest_first())):
        if str(task["type"]).startswith("ceph"):
            when = datetime.datetime.fromtimestamp(int(task["starttime"]), datetime.UTC)
            what = f"{task['type']} {task['id']} {task.get('status', 'running')}"
            lines.append(f"{when.isoformat()} mon.{task['node']} (mon.0) : cluster [INF] {what}")
    first = int(call.params.get("start", 0))
    count = int(call.params.get("limit", _DEFAULT_LIMIT)) or len(lines)
    call.total = len(lines)
    page = lines[first : first + count]
    return [{"n": number, "t": text} for number, text in enumerate(page, start=first + 1)]


def _stamp(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
