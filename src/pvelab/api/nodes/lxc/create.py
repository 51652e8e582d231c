"""Creating a container: `POST /nodes/{node}/lxc`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import ostemplates
from pvelab.api.nodes.lxc.disks import VolumeMaker
from pvelab.api.nodes.lxc.networks import complete_network, is_network
from pvelab.api.nodes.lxc.options import OptionCheck
from pvelab.api.nodes.lxc.planning import (
    NOT_CONFIG,
    check_keys,
    check_storages,
    is_plain,
    list_requested_volumes,
)
from pvelab.api.nodes.lxc.power import start_container
from pvelab.api.nodes.lxc.restore import restore_container
from pvelab.api.nodes.lxc.settings import normalize
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, not_permitted
from pvelab.server.routing import route
from pvelab.world.storage.volume_access import check_volume_access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["create_container"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is to be created."""

    node: str
    vmid: int
    template: str
    settings: Mapping[str, Any]
    volumes: Mapping[str, str]
    pool: str | None
    secrets: Mapping[str, str]
    start: bool
    managed: bool


@route("POST /nodes/{node}/lxc")
def create_container(call: Call) -> Any:
    """Reserve the number at once, make the container in a task."""
    world = call.world
    if call.params.get("restore"):
        return restore_container(call)
    world.cluster.require_quorum()
    plan = _plan_creation(call)
    world.guests.create("lxc", plan.node, plan.vmid, {"lock": "create"})

    async def work(task: Task) -> None:
        await _create(world, task, plan)
        if plan.start:
            await start_container(world, task, plan.vmid, plan.node)
        if plan.managed:
            with task.step():
                task.log("Add as HA resource")
                sid, state = f"ct:{plan.vmid}", "started" if plan.start else "stopped"
                world.store.put("ha_resources", sid, {"sid": sid, "type": "ct", "state": state})

    return call.start_task("vzcreate", plan.vmid, work)


def _plan_creation(call: Call) -> _Plan:
    params, world, vmid, node = call.params, call.world, call.vmid, call.node
    unprivileged, pool = bool(params.get("unprivileged", 1)), params.get("pool")
    _check_right(call, pool, unprivileged=unprivileged)
    given = {key: value for key, value in params.items() if key not in NOT_CONFIG}
    storage = str(params.get("storage", "local"))
    volumes = list_requested_volumes(given, storage)
    OptionCheck(call, unprivileged=unprivileged, pool=pool).check_set({**given, **volumes})
    _check_template(call, str(params["ostemplate"]))
    check_storages(call, volumes, storage)
    settings = normalize(world, node, {key: value for key, value in given.items() if is_plain(key)})
    if unprivileged:
        settings["unprivileged"] = 1
    return _Plan(
        node=node,
        vmid=vmid,
        template=str(params["ostemplate"]),
        settings={key: value for key, value in settings.items() if value != ""},
        volumes=volumes or {"rootfs": f"{storage}:4"},
        pool=pool,
        secrets={key: str(params[key]) for key in ("password", "ssh-public-keys") if key in params},
        start=bool(params.get("start")),
        managed=bool(params.get("ha-managed")),
    )


def _check_right(call: Call, pool: str | None, *, unprivileged: bool) -> None:
    """Refuse a number that is taken, and who may not create the container."""
    if not unprivileged:
        call.check("/", "Sys.Modify")
    if call.params.get("ha-managed"):
        call.check("/", "Sys.Console")
    call.world.guests.require_free(call.vmid, "lxc")
    check_keys(call.params.get("ssh-public-keys", ""))
    if pool is not None:
        call.world.pools.require(pool)
    in_pool = pool is not None and call.may(f"/pool/{pool}", "VM.Allocate")
    if not in_pool and not call.may(f"/vms/{call.vmid}", "VM.Allocate"):
        raise not_permitted()


def _check_template(call: Call, volid: str) -> None:
    if volid == "-":
        raise PveError("pipe requires cli environment")
    check_volume_access(call, volid, "vztmpl", call.vmid)


async def _create(world: World, task: Task, plan: _Plan) -> None:
    maker = VolumeMaker(world=world, worker=task, node=plan.node, vmid=plan.vmid, rescan=False)
    async with world.locks.guest("lxc", plan.vmid):
        try:
            points = await maker.create(plan.volumes)
            config = {**plan.settings, **points}
            _unpack(world, task, plan, config)
            await task.spend(Work.CREATE)
            with task.step():
                _finish(world, plan, config)
        except PveError as err:
            maker.undo()
            with task.step():
                world.guests.remove(plan.vmid)
            raise PveError(f"unable to create CT {plan.vmid} - {err.text}") from err


def _unpack(world: World, task: Task, plan: _Plan, config: dict[str, Any]) -> None:
    volume, path = ostemplates.template_file(world, plan.node, plan.template)
    if ostemplates.is_oci(volume):
        task.log("Detected OCI archive")
        _set_up_image(world, task, config, volume or {})
    else:
        task.log(f"extracting archive '{path}'")
        size = int((volume or {}).get("size", 0))
        task.log(f"Total bytes read: {size * 3} ({size * 3 // 2**20}MiB, 200MiB/s)")
    config.setdefault("ostype", ostemplates.operating_system_of(plan.template))
    config.setdefault("arch", ostemplates.architecture_of(plan.template))
    if config["ostype"] != "unmanaged":
        task.log(f"Detected container architecture: {config['arch']}")
    config.setdefault("hostname", f"CT{plan.vmid}")
    config["memory"] = config.get("memory") or 512
    config.setdefault("swap", 512)
    for key in [key for key in config if is_network(key)]:
        config[key] = complete_network(world, str(config[key]))


def _set_up_image(world: World, task: Task, config: dict[str, Any], volume: Mapping[str, Any]) -> None:
    """Take over what an OCI image says of itself; the network of such a container is the host's work."""
    image = volume["oci"]
    if image.get("entrypoint"):
        config["entrypoint"] = image["entrypoint"]
        config["cmode"] = "console"
        for key in [key for key in config if is_network(key)]:
            if "host-managed=" not in str(config[key]):
                task.log(f"Auto-Enabling host-managed network for network device {key}.")
                config[key] = complete_network(world, str(config[key]), changes={"host-managed": 1})
    if image.get("env"):
        config["env"] = "\0".join(image["env"])
    config["lxc"] = [["lxc.signal.halt", "SIGTERM"]]


def _finish(world: World, plan: _Plan, config: dict[str, Any]) -> None:
    guest = world.guests.get(plan.vmid)
    if guest is None:
        raise PveError(f"Configuration file for CT {plan.vmid} vanished")
    world.guests.update(guest, config=config)
    if plan.secrets:
        world.store.put("guest_secrets", str(plan.vmid), dict(plan.secrets))
    if plan.pool is not None:
        world.pools.add_guest(plan.pool, plan.vmid)
