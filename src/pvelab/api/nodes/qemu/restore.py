"""Restoring a VM from an archive: `POST /nodes/{node}/qemu` with `archive`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, options
from pvelab.api.nodes.qemu.disks import CLOUDINIT_SIZE
from pvelab.api.nodes.qemu.networks import complete_network
from pvelab.api.nodes.qemu.power import start_guest
from pvelab.api.nodes.qemu.settings import NOT_CONFIG, normalize
from pvelab.api.nodes.qemu.template import base_disks
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter, not_permitted
from pvelab.world.generate import new_uuid
from pvelab.world.ha.config import add_resource
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.allocation import allocate, free_all
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_access import check_volume_access
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volume_names import path_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["restore_vm"]

_UUID = re.compile(r"uuid=[0-9a-fA-F-]+")


def restore_vm(call: Call) -> str:
    """Take (or reserve) the number at once, restore the VM in a task.

    Raises:
        PveError: The caller may not, the archive cannot be used, or the number is taken.
    """
    params, world, vmid = call.params, call.world, call.vmid
    world.cluster.require_quorum()
    _check_right(call)
    settings = {key: value for key, value in params.items() if key not in NOT_CONFIG}
    for key in sorted(settings):
        if drives.is_drive(key):
            raise bad_parameter(key, "option conflicts with option 'archive'")
    archive = str(params["archive"])
    if archive == "-":
        raise PveError("pipe requires cli environment")
    check_volume_access(call, archive, "backup", vmid)
    if settings:
        options.check_options(call, settings, params.get("pool"))
        options.check_bridges(call, settings)
    restore = _Restore(
        call=call,
        node=call.node,
        vmid=vmid,
        archive=archive,
        settings=normalize(world, settings, ostype=str(settings.get("ostype", ""))),
    )
    _take_number(call)
    return call.start_task("qmrestore", vmid, restore.run)


def _check_right(call: Call) -> None:
    params, vmid, pool = call.params, call.vmid, call.params.get("pool")
    if pool is not None:
        call.world.pools.require(pool)
    if params.get("storage") is not None:
        call.check(f"/storage/{params['storage']}", "Datastore.AllocateSpace")
    if params.get("ha-managed"):
        call.check("/", "Sys.Console")
    if params.get("start"):
        options.check_vm(call, "VM.PowerMgmt", pool=pool)
    if call.may(f"/vms/{vmid}", "VM.Allocate") or (pool and call.may(f"/pool/{pool}", "VM.Allocate")):
        return
    present = call.world.guests.get(vmid) is not None
    if not (params.get("force") and present and call.may(f"/vms/{vmid}", "VM.Backup")):
        raise not_permitted()


def _take_number(call: Call) -> None:
    """Lock the VM that is to be replaced, or reserve the number of a new one."""
    world, vmid, failing = call.world, call.vmid, f"unable to restore VM {call.vmid} -"
    guest = world.guests.get(vmid)
    if guest is None:
        world.guests.create("qemu", call.node, vmid, {"lock": "create"})
        return
    if not call.params.get("force") or guest["type"] != "qemu" or guest["node"] != call.node:
        word = "VM" if guest["type"] == "qemu" else "CT"
        raise PveError(f"{failing} {word} {vmid} already exists on node '{guest['node']}'")
    if guest["config"].get("lock"):
        raise PveError(f"{failing} VM is locked ({guest['config']['lock']})")
    world.guests.update(guest, config={**guest["config"], "lock": "create"})


@dataclass(slots=True, kw_only=True)
class _Restore:
    """The work of one restore."""

    call: Call
    node: str
    vmid: int
    archive: str
    settings: Mapping[str, Any]
    made: list[str] = field(default_factory=list)

    @property
    def world(self) -> World:
        """The lab."""
        return self.call.world

    async def run(self, task: Task) -> None:
        """Restore the VM; what fails leaves the VM as it is, without its lock."""
        params, vmid = self.call.params, self.vmid

        def give_up() -> None:
            free_all(self.world, task, self.made, self.node)
            self._unlock(task)
            task.log(
                "error before or during data restore, some or all disks were not completely restored."
                f" VM {vmid} state is NOT cleaned up."
            )

        with undo_on_failure(give_up):
            await self._restore(task)
        if params.get("start") or params.get("live-restore"):
            task.log("Execute autostart")
            try:
                await start_guest(self.world, task, vmid, self.node)
            except PveError as err:
                task.warn(err.text)
        if params.get("ha-managed"):
            state = "started" if params.get("start") or params.get("live-restore") else "stopped"
            with task.step():
                task.log(f"Add HA resource with request-state '{state}'")
                add_resource(self.world.store, f"vm:{vmid}", state)

    async def _restore(self, task: Task) -> None:
        world, vmid, failing = self.world, self.vmid, f"unable to restore VM {self.vmid} -"
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", self.node, vmid)
            if guest["config"].get("protection"):
                raise PveError(f"{failing} protection mode enabled")
            if guest["status"] == "running":
                raise PveError(f"{failing} vm is running")
            archive = self._content()
            merged = {**archive["config"], **self.settings}
            options.check_bridges(self.call, merged)
            task.log(f"restore vma archive: {self._path()}")
            devices = await self._allocate(task, archive)
            await task.spend(Work.RESTORE)
            for key, size in ((key, disk["size"]) for key, disk in archive["disks"].items()):
                task.log(f"restore drive '{key}' to '{devices[key]}' (size {size})")
            with task.step():
                self._finish(guest, archive, devices)
                task.log("rescan volumes...")
        self.made.clear()

    def _content(self) -> Mapping[str, Any]:
        storage, _ = parse_volume_id(self.archive)
        config = self.world.storages.require(storage, self.node)
        volume = self.world.volumes.find(self.archive, self.node)
        if self.call.params.get("live-restore") and config["type"] != "pbs":
            text = "live-restore is only compatible with backup images from a Proxmox Backup Server"
            raise PveError(text)
        if volume is None:
            raise PveError(f"unable to open file '{self._path()}'")
        content: Mapping[str, Any] = volume.get("archive", {})
        if content.get("kind") != "qemu":
            raise PveError(f"unable to restore VM {self.vmid} - no valid archive")
        return content

    def _path(self) -> str:
        storage, _ = parse_volume_id(self.archive)
        return path_of(self.world.storages.config(storage), self.archive)

    async def _allocate(self, task: Task, archive: Mapping[str, Any]) -> dict[str, str]:
        """Make the volumes of the new VM and return them by key, the cloud-init drive among them."""
        wanted: dict[str, tuple[str, str, int, str | None]] = {}
        for key, disk in archive["disks"].items():
            wanted[key] = (str(disk["storage"]), str(disk["format"]), int(disk["size"]), None)
        for key in drives.drive_keys(archive["config"]):
            drive = drives.parse_drive(self.world.facts, key, str(archive["config"][key]))
            if drives.is_cloudinit(drive) and ":" in str(drive["file"]):
                storage = parse_volume_id(str(drive["file"]))[0]
                wanted[key] = (storage, "qcow2", CLOUDINIT_SIZE, f"vm-{self.vmid}-cloudinit")
        return {key: await self._make(task, *wanted[key]) for key in sorted(wanted)}

    async def _make(self, task: Task, storage: str, chosen: str, size: int, name: str | None) -> str:
        storage = str(self.call.params.get("storage") or storage or "local")
        config = self.world.storages.require(storage, self.node)
        if "images" not in self.world.storages.content_types(config):
            raise PveError(f"Content type 'images' is not available on storage '{storage}'")
        self.call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        kind = type_of(config)
        fitting = chosen if chosen in kind.formats else str(config.get("format") or kind.default_format)
        if name is not None and kind.files:
            name = f"{name}.{fitting}"
        present = self._present_cloudinit(storage, name)
        if present is not None:
            return present
        volid = await allocate(
            self.world,
            task,
            NewVolume(storage=storage, node=self.node, vmid=self.vmid, size=size, format=fitting, name=name),
        )
        self.made.append(volid)
        task.log(f"new volume ID is '{volid}'")
        return volid

    def _present_cloudinit(self, storage: str, name: str | None) -> str | None:
        """Return the cloud-init drive of the VM that is replaced, whose name is the same."""
        for volume in self.world.volumes.of_guest(self.vmid, self.node) if name else ():
            volid = str(volume["volid"])
            if volume["storage"] == storage and volid.endswith(f"{name}"):
                return volid
        return None

    def _finish(self, old: Document, archive: Mapping[str, Any], devices: Mapping[str, str]) -> None:
        world, pool = self.world, self.call.params.get("pool")
        config = self._config(archive, devices)
        kept = self._free_old(old, devices)
        for number, volid in enumerate(kept):
            config[f"unused{number}"] = volid
        if config.get("template"):
            config = base_disks(world, self.node, config)
        world.guests.save({**old, "config": config, "pending": {}, "pending_delete": {}, "snapshots": {}})
        if pool is not None:
            world.pools.add_guest(pool, self.vmid)

    def _config(self, archive: Mapping[str, Any], devices: Mapping[str, str]) -> dict[str, Any]:
        unique, config = bool(self.call.params.get("unique")), {}
        for key, value in archive["config"].items():
            if key in ("lock", "parent") or key.startswith("unused"):
                continue
            config[key] = value
            if drives.is_drive(key):
                drive = drives.parse_drive(self.world.facts, key, str(value))
                if key in devices:
                    drive["file"] = devices[key]
                    volume = self.world.volumes.require(devices[key], self.node)
                    drive["size"] = int(volume["size"])
                    config[key] = drives.print_drive(self.world.facts, key, drive)
                elif "backup" in drive and not drive["backup"]:
                    # It becomes a comment in the file, which no one reads.
                    del config[key]
            elif unique and re.fullmatch(r"net\d+", key):
                config[key] = complete_network(self.world, str(value), new_address=True)
            elif unique and key == "smbios1":
                config[key] = _UUID.sub(f"uuid={new_uuid()}", str(value))
            elif key == "vmgenid" and value != "0":
                config[key] = new_uuid()
        return {**config, **self.settings}

    def _free_old(self, old: Document, devices: Mapping[str, str]) -> list[str]:
        """Free the disks that the archive replaces; return the others, which become unused."""
        kept: list[str] = []
        for snapshot in old["snapshots"].values():
            if snapshot.get("vmstate"):
                self.world.volumes.free(str(snapshot["vmstate"]), self.node)
        for key, value in old["config"].items():
            volid = str(value).partition(",")[0]
            is_disk = drives.is_drive(key) or key.startswith("unused")
            if not is_disk or ":" not in volid or volid.startswith("/") or owner_of(volid) != self.vmid:
                continue
            if volid in devices.values():
                continue
            if key in devices or drives.is_cloudinit({"file": volid}):
                images.check_unused_base(self.world, volid, self.node)
                self.world.volumes.free(volid, self.node)
            else:
                for name in old["snapshots"]:
                    images.drop_snapshot(self.world, volid, self.node, name)
                kept.append(volid)
        return kept

    def _unlock(self, task: Task) -> None:
        guest = self.world.guests.get(self.vmid)
        if guest is not None and guest["config"].get("lock") == "create":
            with task.step():
                unlocked = {key: value for key, value in guest["config"].items() if key != "lock"}
                self.world.guests.update(guest, config=unlocked)
