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
    if params.get("add_storages"):
        call.check("/storage", "Datastore.Allocate")
        if not name[0].isalpha() or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise PveError("pool name contains characters which are illegal for storage naming")
    given = {key: params[key] for key in _OPTIONS if key in params}

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            main = f"{name}-metadata" if erasure else name
            _create(world, task, main, given)
            if erasure:
                _create_erasure(world, task, name, erasure, given)
            if params.get("add_storages"):
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
    task.log(f"created new erasure code profile '{profile}'")
    size = {"size": k + m, "min_size": k + 1 if m > 1 else k, "crush_rule": f"{name}-data"}
    _add_pool(world, f"{name}-data", {**given, **size}, kind="erasure")


def _create(world: World, task: Task, name: str, given: Mapping[str, Any]) -> None:
    ceph = Ceph(world)
    if name in ceph.pools():
        task.log(f"pool {name}: already exists")
        raise PveError(f"mon_command failed - pool '{name}' already exists")
    rule = given.get("crush_rule")
    if rule is not None and rule not in ceph.rules():
        raise PveError(f"Could not set: crush_rule '{rule}'")
    _add_pool(world, name, given)
    for key, value in given.items():
        task.log(f"pool {name}: applying {key} = {value}")


def _add_pool(world: World, name: str, given: Mapping[str, Any], *, kind: str = "replicated") -> None:
    """Put a pool with what is given and the defaults of the cluster, in the running transaction."""
    ceph = Ceph(world)
    config = ceph.require_set_up()
    defaults = {
        "size": int(config["size"]),
        "min_size": int(config["min_size"]),
        "pg_num": 128,
        "pg_autoscale_mode": "warn",
        "crush_rule": "replicated_rule",
        "application": "rbd",
    }
    pool = {**defaults, **given, "id": ceph.next_pool(), "type": kind}
    world.store.put(POOLS, name, pool)


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
            pool = ceph.require_pool(name)
            for key, value in given.items():
                task.log(f"pool {name}: applying {key} = {value}")
            if "crush_rule" in given and given["crush_rule"] not in ceph.rules():
                raise PveError("Could not set: crush_rule")
            if "size" in given and pool["type"] == "erasure":
                raise PveError("Could not set: size")
            call.store.put(POOLS, name, {**pool, **given})
            ceph.refresh_capacities()

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
