"""Restoring a container from an archive: `POST /nodes/{node}/lxc` with `restore`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import VolumeMaker, free_volume
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.networks import complete_network, is_network
from pvelab.api.nodes.lxc.options import OptionCheck, check_bridge
from pvelab.api.nodes.lxc.planning import (
    NOT_CONFIG,
    check_keys,
    check_storages,
    is_plain,
    list_requested_volumes,
)
from pvelab.api.nodes.lxc.power import start_container
from pvelab.api.nodes.lxc.settings import normalize
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, not_permitted
from pvelab.world.ha.config import add_resource
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage.volume_access import check_volume_access
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["restore_container"]

_NOT_RECOVERED = frozenset(("rootfs", "snapshots", "unprivileged", "parent", "template", "lock"))
_RUNNING = "can't overwrite running container"


def restore_container(call: Call) -> str:
    """Take (or reserve) the number at once, restore the container in a task.

    Raises:
        PveError: The caller may not, the archive cannot be used, or the number is taken.
    """
    params, world, vmid = call.params, call.world, call.vmid
    world.cluster.require_quorum()
    old = _check_number(call)
    check_keys(params.get("ssh-public-keys", ""))
    _check_right(call, old)
    given = {key: value for key, value in params.items() if key not in NOT_CONFIG}
    storage = str(params.get("storage", "local"))
    volumes = list_requested_volumes(given, storage)
    unprivileged = params.get("unprivileged")
    checked = OptionCheck(call, unprivileged=bool(unprivileged), pool=params.get("pool"))
    checked.check_set({**given, **volumes})
    archive = str(params["ostemplate"])
    if archive == "-":
        raise PveError("pipe requires cli environment")
    check_volume_access(call, archive, "backup", vmid)
    check_storages(call, volumes, storage)
    settings = normalize(world, call.node, {key: value for key, value in given.items() if is_plain(key)})
    restore = _Restore(
        call=call,
        node=call.node,
        vmid=vmid,
        archive=archive,
        storage=storage,
        settings={key: value for key, value in settings.items() if value != ""},
        volumes=volumes,
        replaces=old is not None,
    )
    if old is None:
        world.guests.create("lxc", call.node, vmid, {"lock": "create"})
    else:
        world.guests.update(old, config={**old["config"], "lock": "create"})
    return call.start_task("vzrestore", vmid, restore.run)


def _check_number(call: Call) -> Document | None:
    """Return the container that is to be replaced, None for a new one."""
    world, vmid = call.world, call.vmid
    guest = world.guests.get(vmid)
    same = guest is not None and guest["type"] == "lxc" and guest["node"] == call.node
    if guest is None or not same or not call.params.get("force"):
        world.guests.require_free(vmid, "lxc")
        return None
    if guest["status"] == "running":
        raise PveError(_RUNNING)
    if guest["config"].get("protection"):
        raise PveError(f"unable to restore CT {vmid} - protection mode enabled")
    if guest["config"].get("lock"):
        raise PveError(f"unable to restore CT {vmid} - CT is locked ({guest['config']['lock']})")
    return guest


def _check_right(call: Call, old: Document | None) -> None:
    params, vmid, pool = call.params, call.vmid, call.params.get("pool")
    if params.get("ha-managed"):
        call.check("/", "Sys.Console")
    if pool is not None:
        call.world.pools.require(pool)
    if call.may(f"/vms/{vmid}", "VM.Allocate") or (pool and call.may(f"/pool/{pool}", "VM.Allocate")):
        return
    if old is None or not call.may(f"/vms/{vmid}", "VM.Backup"):
        raise not_permitted()
    if old["config"].get("unprivileged") and params.get("unprivileged") == 0:
        call.check("/", "Sys.Modify")


@dataclass(slots=True, kw_only=True)
class _Restore:
    """The work of one restore."""

    call: Call
    node: str
    vmid: int
    archive: str
    storage: str
    settings: Mapping[str, Any]
    volumes: Mapping[str, str]
    replaces: bool
    delayed: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> World:
        """The lab."""
        return self.call.world

    async def run(self, task: Task) -> None:
        """Restore the container; a new one that fails is gone, an old one keeps what it had."""
        params, world, vmid = self.call.params, self.world, self.vmid
        maker = VolumeMaker(world=world, worker=task, node=self.node, vmid=vmid, rescan=False)

        def give_up() -> None:
            maker.undo()
            self._give_up(task)

        with undo_on_failure(give_up, failing=f"unable to restore CT {vmid} - "):
            async with world.locks.guest("lxc", vmid):
                await self._restore(task, maker)
        if params.get("start"):
            await start_container(world, task, vmid, self.node)
        if params.get("ha-managed"):
            state = "started" if params.get("start") else "stopped"
            with task.step():
                task.log("Add as HA resource")
                add_resource(world.store, f"ct:{vmid}", state)

    async def _restore(self, task: Task, maker: VolumeMaker) -> None:
        guest = self.world.guests.require("lxc", self.node, self.vmid)
        if guest["status"] == "running":
            raise PveError(_RUNNING)
        task.log(f"recovering backed-up configuration from '{self.archive}'")
        content = self._content()
        self._check_bridges(content)
        unprivileged = self.call.params.get("unprivileged", content["config"].get("unprivileged"))
        if not unprivileged and (not self.replaces or guest["config"].get("unprivileged")):
            self.call.check("/", "Sys.Modify")
        points = await maker.create(self.volumes or self._list_archived_volumes(content))
        task.log(f"restoring '{self.archive}' now..")
        await task.spend(Work.RESTORE)
        task.log("merging backed-up and given configuration..")
        with task.step():
            self._free_old(task, guest)
            config = {**self._config(task, content), **points, **self.delayed}
            if unprivileged:
                config["unprivileged"] = 1
            self.world.guests.save(
                {**guest, "config": config, "pending": {}, "pending_delete": {}, "snapshots": {}}
            )
            if self.call.params.get("pool"):
                self.world.pools.add_guest(self.call.params["pool"], self.vmid)

    def _content(self) -> Mapping[str, Any]:
        storage, _ = parse_volume_id(self.archive)
        self.world.storages.require(storage, self.node)
        volume = self.world.volumes.find(self.archive, self.node)
        if volume is None:
            raise PveError(f"volume '{self.archive}' does not exist")
        content: Mapping[str, Any] = volume.get("archive", {})
        if content.get("kind") != "lxc":
            raise PveError("ERROR: archive contains no configuration file")
        return content

    def _check_bridges(self, content: Mapping[str, Any]) -> None:
        for key, value in content["config"].items():
            if is_network(key) and key not in self.settings:
                check_bridge(self.call, str(value))

    def _list_archived_volumes(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Return the volumes that the archive says, to be created on the storage of the call."""
        facts, wanted = self.world.facts, {}
        for key, point in mountpoints.each_volume(facts, content["config"]):
            kind = mountpoints.mount_type(str(point["volume"]))
            if kind is MountType.VOLUME:
                size = int(point.pop("size", 0) or 0)
                if not size:
                    raise PveError(f"unable to detect disk size - please specify {key} (size)")
                point["volume"] = f"{self.storage}:{size / 2**30:g}"
                wanted[key] = mountpoints.print_mount_point(facts, key, point)
            elif not self.call.is_root:
                raise PveError(f"restoring '{key}' to {kind} mount is only possible for root")
            else:
                self.delayed[key] = str(content["config"][key])
        if "rootfs" not in wanted:
            raise PveError("rootfs configuration could not be recovered, please check and specify manually!")
        return wanted

    def _config(self, task: Task, content: Mapping[str, Any]) -> dict[str, Any]:
        config = dict(self.settings)
        for key, value in content["config"].items():
            if key in _NOT_RECOVERED or mountpoints.is_mount_point(key) or key.startswith("unused"):
                continue
            if key == "lxc" and not self.call.is_root:
                lines = "\n".join(f"{name}: {text}" for name, text in value)
                task.warn(f"skipping custom lxc options, restore manually as root:\n{lines}")
            elif is_network(key) and self.call.params.get("unique"):
                config[key] = complete_network(self.world, str(value), new_address=True)
            else:
                config.setdefault(key, value)
        config.setdefault("hostname", f"CT{self.vmid}")
        config["memory"] = config.get("memory") or 512
        config.setdefault("swap", 512)
        return config

    def _free_old(self, task: Task, guest: Document) -> None:
        """Free the volumes of the container that is replaced."""
        seen: set[str] = set()
        for config in (guest["config"], guest["pending"]):
            for _, point in mountpoints.each_volume(self.world.facts, config, unused=True):
                volid = str(point["volume"])
                if volid not in seen:
                    seen.add(volid)
                    free_volume(self.world, self.vmid, volid, self.node, task)

    def _give_up(self, task: Task) -> None:
        guest = self.world.guests.get(self.vmid)
        if guest is None or guest["config"].get("lock") != "create":
            return
        with task.step():
            if self.replaces:
                unlocked = {key: value for key, value in guest["config"].items() if key != "lock"}
                self.world.guests.update(guest, config=unlocked)
            else:
                self.world.guests.remove(self.vmid)
