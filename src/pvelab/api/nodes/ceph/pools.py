"""Pools of a Ceph cluster: `/nodes/{node}/ceph/pool`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.params import properties
from pvelab.server.params.formats import parse_size
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.cluster.ceph import POOLS, Ceph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["create_pool", "index_pool", "list_pools", "read_pool", "remove_pool", "update_pool"]

_OPTIONS = (
    *("size", "min_size", "pg_num", "pg_num_min", "crush_rule", "application", "pg_autoscale_mode"),
    *("target_size", "target_size_ratio"),
)
# What Proxmox itself gives a new pool, whatever the cluster was set up with.
_DEFAULTS: Mapping[str, Any] = {
    "size": 3,
    "min_size": 2,
    "pg_num": 128,
    "application": "rbd",
    "pg_autoscale_mode": "warn",
}
_METADATA_GROUPS = 32
_UNSET_BY_ZERO = ("target_size", "target_size_ratio", "pg_num_min")
_FLAGS = (
    *("noscrub", "nodeep-scrub", "nodelete", "nopgchange", "nosizechange", "write_fadvise_dontneed"),
    *("use_gmt_hitset", "fast_read"),
)


@route("GET /nodes/{node}/ceph/pool")
def list_pools(call: Call) -> Any:
    """List the pools with how full they are."""
    ceph = Ceph(call.world)
    ceph.require()
    return [_row(ceph, name, pool) for name, pool in ceph.pools().items()]


def _row(ceph: Ceph, name: str, pool: Document) -> dict[str, Any]:
    used, room = ceph.pool_used(name) * int(pool["size"]), ceph.total() or 1
    row = {
        "pool": pool["id"],
        "pool_name": name,
        "type": pool["type"],
        "size": pool["size"],
        "min_size": pool["min_size"],
        "pg_num": pool["pg_num"],
        "pg_num_final": pool["pg_num"],
        "pg_autoscale_mode": pool["pg_autoscale_mode"],
        "crush_rule": ceph.rules().index(str(pool["crush_rule"])),
        "crush_rule_name": pool["crush_rule"],
        "application_metadata": {str(pool["application"]): {}},
        "autoscale_status": _autoscale(name, pool),
        "bytes_used": used,
        "percent_used": used / room,
    }
    return (
        row | {key: pool[key] for key in ("pg_num_min", "target_size_ratio") if key in pool} | _target(pool)
    )


def _target(pool: Document) -> dict[str, Any]:
    return {"target_size": parse_size(str(pool["target_size"]))} if pool.get("target_size") else {}


def _autoscale(name: str, pool: Document) -> dict[str, Any]:
    return {
        "pool_name": name,
        "pool_id": pool["id"],
        "pg_autoscale_mode": pool["pg_autoscale_mode"],
        "pg_num_target": pool["pg_num"],
        "pg_num_final": pool["pg_num"],
        "would_adjust": False,
    }


@route("GET /nodes/{node}/ceph/pool/{name}")
def index_pool(call: Call) -> Any:
    """List what there is of a pool."""
    ceph = Ceph(call.world)
    ceph.require()
    return [{"name": "status"}]


@route("GET /nodes/{node}/ceph/pool/{name}/status")
def read_pool(call: Call) -> Any:
    """Answer the settings of a pool, and with `verbose` what is in it."""
    ceph, name = Ceph(call.world), str(call.params["name"])
    ceph.require()
    pool = ceph.require_pool(name)
    answer: dict[str, Any] = {
        "id": pool["id"],
        "name": name,
        "size": pool["size"],
        "min_size": pool["min_size"],
        "pg_num": pool["pg_num"],
        "pgp_num": pool["pg_num"],
        "crush_rule": pool["crush_rule"],
        "pg_autoscale_mode": pool["pg_autoscale_mode"],
        "hashpspool": True,
        **dict.fromkeys(_FLAGS, False),
        **{key: pool[key] for key in ("pg_num_min", "target_size_ratio") if key in pool},
        **_target(pool),
    }
    if call.params.get("verbose"):
        used = ceph.pool_used(name)
        room = max(0, ceph.total() // int(pool["size"]) - used)
        answer["autoscale_status"] = _autoscale(name, pool)
        answer["application_list"] = [pool["application"]]
        answer["statistics"] = {"stored": used, "bytes_used": used * int(pool["size"]), "max_avail": room}
    return answer


@route("POST /nodes/{node}/ceph/pool")
def create_pool(call: Call) -> Any:
    """Make a pool (or two, for erasure coding), in a task, with a storage on it if asked for."""
    params, ceph, world = call.params, Ceph(call.world), call.world
    ceph.require()
    name = str(params["name"])
    erasure = _erasure(call)
    add_storages = params.get("add_storages", bool(erasure))
    if add_storages:
        call.check("/storage", "Datastore.Allocate")
        if not name[0].isalpha() or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise PveError("pool name contains characters which are illegal for storage naming")
    given = {**_DEFAULTS, **{key: params[key] for key in _OPTIONS if key in params}}

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            main = f"{name}-metadata" if erasure else name
            if erasure:
                _create_erasure(world, task, name, erasure, given)
            refused = _create(world, task, main, given | ({"pg_num": _METADATA_GROUPS} if erasure else {}))
        _require_all(refused)
        with task.step():
            if add_storages:
                _add_storage(world, name, main, f"{name}-data" if erasure else None)
            Ceph(world).refresh_capacities()

    return call.start_task("cephcreatepool", name, work)


def _erasure(call: Call) -> Mapping[str, Any]:
    if "erasure-coding" not in call.params:
        return {}
    schema = call.world.facts.schema("POST /nodes/{node}/ceph/pool", "erasure-coding")["format"]
    try:
        return properties.parse(schema, str(call.params["erasure-coding"]))
    except FormatError as err:
        raise PveError(str(err)) from err


def _create_erasure(
    world: World, task: Task, name: str, erasure: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    k, m = int(erasure["k"]), int(erasure["m"])
    profile = str(erasure.get("profile") or f"pve_ec_{name}")
    if not erasure.get("profile"):
        task.log(f"created new erasure code profile '{profile}'")
    # How many pieces there are, and where they go, is up to the profile.
    own = {"size": k + m, "min_size": k + 1 if m > 1 else k, "crush_rule": f"{name}-data"}
    _create(world, task, f"{name}-data", {**given, **own}, kind="erasure")


def _create(
    world: World, task: Task, name: str, given: Mapping[str, Any], *, kind: str = "replicated"
) -> list[str]:
    """Make a pool, in the running transaction, and return what Ceph refuses of it.

    Ceph changes a pool of that name that is there already.
    """
    ceph = Ceph(world)
    present = ceph.pools().get(name)
    if present is not None:
        if present["type"] != kind:
            raise PveError(f"mon_command failed - pool '{name}' cannot change to type {kind}")
        return _set(world, task, name, given)
    rule = given.get("crush_rule")
    refused = ["crush_rule"] if kind == "replicated" and rule not in (None, *ceph.rules()) else []
    given = {key: value for key, value in given.items() if key not in refused}
    pool = {"crush_rule": "replicated_rule", **given, "id": ceph.next_pool(), "type": kind}
    world.store.put(POOLS, name, _without_zeros(pool))
    for key, value in given.items():
        task.log(f"pool {name}: applying {key} = {value}")
    return refused


def _without_zeros(pool: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what Ceph takes a zero for: not set."""
    return {key: value for key, value in pool.items() if key not in _UNSET_BY_ZERO or _number(value)}


def _number(value: Any) -> float:
    """Return the number that a size or a ratio stands for."""
    return float(parse_size(value) or 0) if isinstance(value, str) else float(value)


def _set(world: World, task: Task, name: str, given: Mapping[str, Any]) -> list[str]:
    """Change settings of a pool one by one, in the running transaction, and return what Ceph refuses."""
    ceph = Ceph(world)
    pool, refused = dict(ceph.require_pool(name)), []
    given = dict(given)
    if pool["type"] == "erasure":
        for key in ("size", "crush_rule"):
            if given.pop(key, None) is not None:
                task.log(f"cannot set '{key}' for erasure coded pool")
    # The number of copies resets how many of them there have to be, so that it comes first.
    for key in sorted(given, key=lambda one: (one != "size", one)):
        value = given[key]
        if key != "application" and pool.get(key) == value:
            task.log(f"skipping '{key}', did not change")
            continue
        task.log(f"pool {name}: applying {key} = {value}")
        if _is_refused(ceph, pool, key, value):
            refused.append(key)
        else:
            pool[key] = value
            if key == "size":
                pool["min_size"] = min(int(value), int(_DEFAULTS["min_size"]))
    world.store.put(POOLS, name, _without_zeros(pool))
    return refused


def _is_refused(ceph: Ceph, pool: Mapping[str, Any], key: str, value: Any) -> bool:
    if key == "min_size":
        return int(value) > int(pool["size"])
    # A pool has one application; Ceph enables another only for those who insist, and Proxmox does not.
    if key == "application":
        return str(value) != str(pool["application"])
    return key == "crush_rule" and value not in ceph.rules()


def _require_all(refused: list[str]) -> None:
    if refused:
        raise PveError(f"Could not set: {', '.join(sorted(refused))}")


def _add_storage(world: World, name: str, pool: str, data: str | None) -> None:
    if name in world.storages.all():
        raise PveError(
            f"adding PVE storage for ceph pool '{name}' failed: storage ID '{name}' already defined"
        )
    settings = {"storage": name, "type": "rbd", "pool": pool, "krbd": 0, "content": "rootdir,images"}
    world.store.put("storages", name, settings | ({"data-pool": data} if data else {}))


@route("PUT /nodes/{node}/ceph/pool/{name}")
def update_pool(call: Call) -> Any:
    """Change settings of a pool, in a task."""
    ceph, name = Ceph(call.world), str(call.params["name"])
    ceph.require()
    given = {key: call.params[key] for key in _OPTIONS if key in call.params}

    async def work(task: Task) -> None:
        with task.step():
            refused = _set(call.world, task, name, given)
            ceph.refresh_capacities()
        # What Ceph accepted is changed all the same.
        _require_all(refused)

    return call.start_task("cephsetpool", name, work)


@route("DELETE /nodes/{node}/ceph/pool/{name}")
def remove_pool(call: Call) -> Any:
    """Remove a pool that no storage has disks in, in a task."""
    params, ceph, world, name = call.params, Ceph(call.world), call.world, str(call.params["name"])
    ceph.require()
    if params.get("remove_storages"):
        call.check("/storage", "Datastore.Allocate")

    async def work(task: Task) -> None:
        storages = _storages_on(world, name)
        for storage in storages if not params.get("force") else ():
            task.log(f"checking storage '{storage}' for RBD images..")
            if world.storages.volumes(storage, world.cluster.local()):
                raise PveError(f"ceph pool '{name}' still in use by storage '{storage}'")
        await task.spend(Work.DELETE)
        with task.step():
            ceph.require_pool(name)
            world.store.delete(POOLS, name)
            for storage in storages if params.get("remove_storages") else ():
                world.store.delete("storages", storage)
                world.store.delete("capacities", f"|{storage}")

    return call.start_task("cephdestroypool", name, work)


def _storages_on(world: World, pool: str) -> list[str]:
    return [
        storage
        for storage, config in world.storages.all().items()
        if config["type"] == "rbd"
        and not config.get("monhost")
        and pool in (config.get("pool", "rbd"), config.get("data-pool"))
    ]
