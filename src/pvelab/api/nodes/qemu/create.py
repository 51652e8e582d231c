"""Creating a VM: `POST /nodes/{node}/qemu`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.machine_versions import QEMU_VERSION
from pvelab.api.nodes.qemu import drives, options
from pvelab.api.nodes.qemu.cpu import check_cpu
from pvelab.api.nodes.qemu.disks import DiskMaker
from pvelab.api.nodes.qemu.power import start_guest
from pvelab.api.nodes.qemu.restore import restore_vm
from pvelab.api.nodes.qemu.settings import NOT_CONFIG, normalize
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, not_permitted
from pvelab.server.routing import route
from pvelab.world.generate import new_uuid
from pvelab.world.ha.config import add_resource
from pvelab.world.rollback import undo_on_failure

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["create_vm"]


@route("POST /nodes/{node}/qemu")
def create_vm(call: Call) -> Any:
    """Reserve the number at once, make the VM in a task."""
    params, world, vmid = call.params, call.world, call.vmid
    pool, storage = params.get("pool"), params.get("storage")
    if params.get("archive"):
        return restore_vm(call)
    world.cluster.require_quorum()
    if pool is not None:
        world.pools.require(pool)
    if storage is not None:
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
    if params.get("ha-managed"):
        call.check("/", "Sys.Console")
    if params.get("start"):
        options.check_vm(call, "VM.PowerMgmt", pool=pool)
    if not call.may(f"/vms/{vmid}", "VM.Allocate") and not (
        pool and call.may(f"/pool/{pool}", "VM.Allocate")
    ):
        raise not_permitted()
    settings = {key: value for key, value in params.items() if key not in NOT_CONFIG}
    drives.check_parameters(world.facts, settings)
    _check_settings(call, settings, storage, pool)
    config = normalize(world, settings, ostype=str(settings.get("ostype", "")))
    world.guests.require_free(vmid, "qemu")
    world.guests.create("qemu", call.node, vmid, {"lock": "create"})
    node, start, managed = call.node, bool(params.get("start")), bool(params.get("ha-managed"))

    async def work(task: Task) -> None:
        maker = DiskMaker(
            world=world, worker=task, node=node, vmid=vmid, config=config, default_storage=storage
        )

        def remove() -> None:
            maker.undo()
            with task.step():
                world.guests.remove(vmid)

        with undo_on_failure(remove, failing=f"unable to create VM {vmid} - "):
            await task.spend(Work.CREATE)
            finished = {**config, **await maker.create(config)}
            with task.step():
                _finish(world, vmid, finished, pool)
        if managed:
            with task.step():
                task.log("Add as HA resource")
                add_resource(world.store, f"vm:{vmid}", "started" if start else "stopped")
        if start:
            task.log("Execute autostart")
        # What HA manages, HA starts.
        if start and not managed:
            await start_guest(world, task, vmid, node)

    return call.start_task("qmcreate", vmid, work)


def _check_settings(call: Call, settings: dict[str, Any], storage: str | None, pool: str | None) -> None:
    check_cpu(call.world, settings)
    options.check_storage_access(call, settings, default_storage=storage, pool=pool)
    options.check_options(call, settings, pool)
    options.check_bridges(call, settings)


def _finish(world: World, vmid: int, config: dict[str, Any], pool: str | None) -> None:
    guest = world.guests.get(vmid)
    if guest is None:
        raise PveError(f"Configuration file for VM {vmid} vanished")
    config.setdefault("smbios1", f"uuid={new_uuid()}")
    config.setdefault("vmgenid", new_uuid())
    config["meta"] = f"creation-qemu={QEMU_VERSION},ctime={int(world.clock.now())}"
    if "boot" not in config:
        config["boot"] = drives.boot_order(_default_boot_order(world, config))
    world.guests.update(guest, config=config)
    if pool is not None:
        world.pools.add_guest(pool, vmid)


def _default_boot_order(world: World, config: dict[str, Any]) -> list[str]:
    """Return the first disk, the first CD drive and the first network, as Proxmox boots by default."""
    found: dict[bool, str] = {}
    for key in drives.drive_keys(config):
        if key not in ("efidisk0", "tpmstate0"):
            drive = drives.parse_drive(world.facts, key, str(config[key]))
            found.setdefault(drives.is_cdrom(drive), key)
    networks = sorted((key for key in config if re.fullmatch(r"net\d+", key)), key=lambda key: int(key[3:]))
    return [*(found[kind] for kind in (False, True) if kind in found), *networks[:1]]
