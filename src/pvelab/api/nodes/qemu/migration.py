"""The work of a migration: look at the volumes, copy them, hand the VM over, remove what stays behind."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pvelab.api.nodes.guest_migration import GuestMigration
from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.devices import local_devices, missing_mappings
from pvelab.api.nodes.qemu.local_volumes import LocalVolume, StorageMap, check_copies, new_format, scan
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.world.cluster.jobs import switch_replication
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document

__all__ = ["Migration"]

_FOUND = {
    "attached": "found local disk '{}' (attached)",
    "unused": "found local disk '{}' (unused)",
    "snapshot": "found local disk '{}' (referenced by snapshot(s))",
    "pending": "found local disk '{}' (pending change)",
    "generated": "found generated disk '{}' (in current VM config)",
}


@dataclass(slots=True, kw_only=True)
class Migration(GuestMigration):
    """One VM on its way from one node to another.

    Attributes:
        storage_map: Where the volumes of each local storage go.
        online: Whether the VM runs and keeps running.
        with_local_disks: Whether local disks of a running VM may be copied.
        force: Whether devices of the node may be left behind.
    """

    kind: ClassVar[str] = "qemu"

    storage_map: StorageMap
    online: bool
    with_local_disks: bool
    force: bool

    async def _work(self) -> None:
        async with self.world.locks.guest("qemu", self.vmid):
            self._prepare()
            await self._transfer()

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
        for volid, local in volumes.items():
            new = functools.partial(self._new_volume, local)
            await self._copy_volume(volid, local.target_storage, new)
        if self.online:
            self._log(f"starting VM {self.vmid} on remote node '{self.target}'")
            self._log(f"starting online/live migration on unix:/run/qemu-server/{self.vmid}.migrate")
        await self.task.spend(Work.MIGRATE)
        with self.task.step():
            self._hand_over(list(volumes))

    def _clean_up(self) -> None:
        self._log("aborting phase 1 - cleanup resources")
        with self.task.step():
            self._drop_copies()

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

    def _new_volume(self, local: LocalVolume, volume: Document) -> NewVolume:
        """Return the copy on the target: under the same name, unless someone has it there already."""
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
        config = {
            key: value for key, value in self._rewrite_volumes(guest["config"]).items() if key != "lock"
        }
        snapshots = {
            name: {**self._rewrite_volumes(snapshot), "config": self._rewrite_volumes(snapshot["config"])}
            for name, snapshot in guest["snapshots"].items()
        }
        run = {**guest["run"], "pid": 1000 + self.task.upid.pid} if guest["run"] else {}
        self.world.guests.update(
            guest,
            node=self.target,
            config=config,
            pending=self._rewrite_volumes(guest["pending"]),
            snapshots=snapshots,
            run=run,
        )
        for volid in volumes:
            if volid in self.copied:
                self.world.volumes.free(volid, self.source)
        switch_replication(self.world.store, self.vmid, self.target)

    def _rewrite_volumes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration that refers to the copies on the target."""
        changed = dict(config)
        for key, value in config.items():
            if drives.is_drive(key) or key.startswith("unused") or key == "vmstate":
                volid, comma, rest = str(value).partition(",")
                if volid in self.copied:
                    changed[key] = f"{self.copied[volid]}{comma}{rest}"
        return changed
