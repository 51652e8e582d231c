"""The work of a migration: look at the volumes, copy them, hand the VM over, remove what stays behind."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.lab import images
from stackyard.lab.allocation import allocate
from stackyard.lab.jobs import replicated_volumes, switch_replication
from stackyard.lab.latency import Work
from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu import drives
from stackyard.lab.resources.qemu.devices import local_devices, missing_mappings
from stackyard.lab.resources.qemu.local_volumes import (
    LocalVolume,
    StorageMap,
    check_copies,
    new_format,
    scan,
)
from stackyard.lab.storages import type_of
from stackyard.lab.undoing import undo_on_failure
from stackyard.lab.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.store import Document
    from stackyard.lab.tasks import Task
    from stackyard.lab.world import World

__all__ = ["Migration"]

_FOUND = {
    "attached": "found local disk '{}' (attached)",
    "unused": "found local disk '{}' (unused)",
    "snapshot": "found local disk '{}' (referenced by snapshot(s))",
    "pending": "found local disk '{}' (pending change)",
    "generated": "found generated disk '{}' (in current VM config)",
}


@dataclass(slots=True, kw_only=True)
class Migration:
    """One VM on its way from one node to another.

    Attributes:
        world: The lab.
        task: Whose work it is.
        vmid: The VM.
        source: The node that it is on.
        target: The node that it goes to.
        storage_map: Where the volumes of each local storage go.
        online: Whether the VM runs and goes on running.
        with_local_disks: Whether local disks of a running VM may be copied.
        force: Whether devices of the node may be left behind.
        copied: The new volume on the target of each that was copied.
    """

    world: World
    task: Task
    vmid: int
    source: str
    target: str
    storage_map: StorageMap
    online: bool
    with_local_disks: bool
    force: bool
    copied: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Do it.

        Raises:
            PveError: `migration aborted`; the log says why, and everything is as it was.
        """
        began = self.world.clock.now()
        try:
            async with self.world.locks.guest("qemu", self.vmid):
                self._prepare()
                await self._transfer()
        except PveError as problem:
            self._error(f"migration aborted (duration {self._duration(began)}): {problem.text}")
            raise PveError("migration aborted") from problem
        self._log(f"migration finished successfully (duration {self._duration(began)})")

    def _prepare(self) -> None:
        guest = self._guest()
        self.world.guests.check_unlocked(guest)
        running = guest["status"] == "running"
        if running and not self.online:
            raise PveError("can't migrate running VM without --online")
        self._check_devices(guest["config"], running=running)
        if not self.world.cluster.is_online(self.target):
            raise PveError("Can't connect to destination address using public key")

    def _check_devices(self, config: Mapping[str, Any], *, running: bool) -> None:
        found, mapped = local_devices(self.world, config, running=running)
        blocking = [name for name in found if name not in mapped]
        if blocking and (running or not self.force):
            raise PveError(f"can't migrate VM which uses local devices: {', '.join(blocking)}")
        if blocking:
            self._log("migrating VM which uses local devices")
        missing = missing_mappings(self.world, mapped, self.target)
        if missing:
            raise PveError(f"can't migrate to '{self.target}': missing mapped devices {', '.join(missing)}")
        staying = [
            f"{key}:{mapped[key]['name']}" for key in sorted(mapped) if "live-migration" not in mapped[key]
        ]
        if running and staying:
            text = "can't live migrate running VM which uses following mapped devices"
            raise PveError(f"{text}: {', '.join(staying)}")
        if mapped:
            self._log("migrating VM which uses mapped local devices")

    async def _transfer(self) -> None:
        address = self.world.cluster.nodes()[self.target]["ip"]
        self._log(f"starting migration of VM {self.vmid} to node '{self.target}' ({address})")
        with self.task.step():
            self._set_lock("migrate")
        with undo_on_failure(self._clean_up):
            try:
                await self._copy_all()
            except PveError as problem:
                self._error(problem.text)
                raise

    async def _copy_all(self) -> None:
        volumes = self._scan()
        if volumes:
            self._log("starting storage migration" if self.online else "copying local disk images")
        for volume in volumes.values():
            await self._copy(volume)
        if self.online:
            self._log(f"starting VM {self.vmid} on remote node '{self.target}'")
            self._log(f"starting online/live migration on unix:/run/qemu-server/{self.vmid}.migrate")
        await self.task.spend(Work.MIGRATE)
        with self.task.step():
            self._hand_over(list(volumes))

    def _clean_up(self) -> None:
        self._log("aborting phase 1 - cleanup resources")
        with self.task.step():
            for volid in self.copied.values():
                self.world.volumes.free(volid, self.target)
            self._set_lock(None)

    def _scan(self) -> dict[str, LocalVolume]:
        found = scan(self.world, self._guest(), self.target, self.storage_map)
        for volid, volume in sorted(found.volumes.items()):
            if volume.where == "attached" and self.online and not self.with_local_disks:
                found.errors[volid] = (
                    "can't live migrate attached local disks without with-local-disks option"
                )
            self._log(_FOUND[volume.where].format(volid))
        for volid, text in sorted(found.errors.items()):
            self._log(f"can't migrate local disk '{volid}': {text}")
        for text in found.others:
            self._log(text)
        prefix = "Problem found while scanning volumes"
        if found.errors or found.others:
            raise PveError(f"{prefix} - can't migrate VM - check log")
        try:
            check_copies(self.world, found.volumes)
        except PveError as problem:
            raise PveError(f"{prefix} - {problem.text}") from problem
        return found.volumes

    async def _copy(self, local: LocalVolume) -> None:
        volume = self.world.volumes.require(local.volid, self.source)
        if local.volid in replicated_volumes(self.world.store, self.vmid, self.target):
            self._log(f"volume '{local.volid}' is replicated to the target already")
            return
        try:
            new = self._new_volume(local, volume)
            volid = await allocate(self.world, self.task, new)
        except PveError as problem:
            raise PveError(
                f"storage migration for '{local.volid}' to storage '{local.target_storage}' failed -"
                f" {problem.text}"
            ) from problem
        self.copied[local.volid] = volid
        self._log(f"volume '{local.volid}' is '{volid}' on the target")
        with self.task.step():
            images.copy_snapshots(self.world, (local.volid, self.source), (volid, self.target))

    def _new_volume(self, local: LocalVolume, volume: Document) -> NewVolume:
        """Return the copy on the target: under the same name, unless somebody has it there already."""
        online = self.online and local.where == "attached"
        chosen = new_format(self.world, volume, local.target_storage, online=online)
        plain = parse_volume_id(local.volid)[1].rpartition("/")[2]
        files = type_of(self.world.storages.config(local.target_storage)).files
        name: str | None = plain.partition(".")[0] + (f".{chosen}" if files else "")
        taken = f"{local.target_storage}:{self.vmid}/{name}" if files else f"{local.target_storage}:{name}"
        if self.world.volumes.find(taken, self.target) is not None and "-disk-" in plain:
            name = None
        return NewVolume(
            storage=local.target_storage,
            node=self.target,
            vmid=self.vmid,
            size=int(volume["size"]),
            format=chosen,
            name=name,
            content=str(volume["content"]),
            image=volume.get("image"),
        )

    def _hand_over(self, volumes: list[str]) -> None:
        guest = self._guest()
        config = {key: value for key, value in self._moved(guest["config"]).items() if key != "lock"}
        snapshots = {
            name: {**self._moved(snapshot), "config": self._moved(snapshot["config"])}
            for name, snapshot in guest["snapshots"].items()
        }
        run = {**guest["run"], "pid": 1000 + self.task.upid.pid} if guest["run"] else {}
        self.world.guests.update(
            guest,
            node=self.target,
            config=config,
            pending=self._moved(guest["pending"]),
            snapshots=snapshots,
            run=run,
        )
        for volid in volumes:
            if volid in self.copied:
                self.world.volumes.free(volid, self.source)
        switch_replication(self.world.store, self.vmid, self.target)

    def _moved(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration that refers to the copies on the target."""
        changed = dict(config)
        for key, value in config.items():
            if drives.is_drive(key) or key.startswith("unused") or key == "vmstate":
                volid, comma, rest = str(value).partition(",")
                if volid in self.copied:
                    changed[key] = f"{self.copied[volid]}{comma}{rest}"
        return changed

    def _guest(self) -> Document:
        return self.world.guests.require("qemu", self.source, self.vmid)

    def _set_lock(self, lock: str | None) -> None:
        guest = self._guest()
        config = {key: value for key, value in guest["config"].items() if key != "lock"}
        self.world.guests.update(guest, config={**config, "lock": lock} if lock else config)

    def _log(self, text: str) -> None:
        now = datetime.datetime.fromtimestamp(self.world.clock.now(), datetime.UTC)
        for line in text.split("\n"):
            self.task.log(f"{now:%Y-%m-%d %H:%M:%S} {line}")

    def _error(self, text: str) -> None:
        self._log(f"ERROR: {text}")

    def _duration(self, began: float) -> str:
        seconds = max(0, int(self.world.clock.now() - began))
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
