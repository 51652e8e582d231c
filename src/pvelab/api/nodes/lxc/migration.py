"""The work of a migration: look at the volumes, copy them, hand the container over, start it there."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pvelab.api.nodes.guest_migration import GuestMigration
from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.power import start_container, stop_container
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.world.cluster.jobs import switch_replication
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_features import name_in_format, owner_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.world.store import Document

__all__ = ["Migration"]

_MIGRATABLE = frozenset(("dir", "zfspool", "lvmthin", "lvm", "btrfs"))
_WITH_SNAPSHOTS = frozenset(("zfspool", "btrfs"))


@dataclass(slots=True, kw_only=True)
class Migration(GuestMigration):
    """One container on its way from one node to another.

    Attributes:
        storages: Where the volumes of each local storage go; the empty name represents all others.
        restart: Whether a running container may be stopped here and started there.
        timeout_s: How long it may take to stop.
    """

    kind: ClassVar[str] = "lxc"

    storages: Mapping[str, str]
    restart: bool
    timeout_s: float

    async def _work(self) -> None:
        async with self.world.locks.guest("lxc", self.vmid):
            was_running = self._prepare()
            await self._transfer(was_running=was_running)
        self._log("start final cleanup")
        if was_running:
            self._log("start container on target node")
            await start_container(self.world, self.task, self.vmid, self.target)

    def _prepare(self) -> bool:
        """Refuse what cannot be migrated; return whether the container runs."""
        world, guest = self.world, self._guest()
        world.guests.check_unlocked(guest)
        running = bool(guest["status"] == "running")
        if running and not self.restart:
            raise PveError("lxc live migration is currently not implemented")
        for key, point in mountpoints.each_volume(world.facts, guest["config"], unused=True):
            volid = str(point["volume"])
            kind = mountpoints.mount_type(volid)
            if kind is not MountType.VOLUME and not point.get("shared"):
                raise PveError(f"cannot migrate local {kind} mount point '{key}'")
            if kind is MountType.VOLUME:
                self._check_storages(volid)
        if not world.cluster.is_online(self.target):
            raise PveError("Can't connect to destination address using public key")
        return running

    def _check_storages(self, volid: str) -> None:
        storages = self.world.storages
        storage, _ = parse_volume_id(volid)
        config = storages.require(storage, self.source)
        if "rootdir" not in storages.content_types(config):
            raise PveError(f"content type 'rootdir' is not available on storage '{storage}'")
        wanted = storage if storages.is_shared(config) else self._storage_for(storage)
        if "rootdir" not in storages.content_types(storages.require(wanted, self.target)):
            raise PveError(f"{volid}: content type 'rootdir' is not available on storage '{wanted}'")

    async def _transfer(self, *, was_running: bool) -> None:
        before = self._guest()
        if was_running:
            self._log(f"shutdown CT {self.vmid}")
            await self._shut_down()
        address = self.world.cluster.nodes()[self.target]["ip"]
        self._log(f"starting migration of CT {self.vmid} to node '{self.target}' ({address})")
        with undo_on_failure(lambda: self._clean_up(before, was_running=was_running)):
            try:
                await self._copy_all()
            except PveError as problem:
                self._error(problem.text)
                raise

    async def _copy_all(self) -> None:
        with self.task.step():
            self._set_lock("migrate")
        for volid in self._local_volumes():
            storage = self._storage_for(parse_volume_id(volid)[0])
            await self._copy_volume(volid, storage, functools.partial(self._new_volume, volid, storage))
        await self.task.spend(Work.MIGRATE)
        with self.task.step():
            self._hand_over()

    def _clean_up(self, before: Document, *, was_running: bool) -> None:
        self._log("aborting phase 1 - cleanup resources")
        with self.task.step():
            self._drop_copies()
            if was_running:
                self._log("start container on source node")
                state = {"status": "running", "started": self.world.clock.now(), "run": before["run"]}
                self.world.guests.update(self._guest(), **state)

    async def _shut_down(self) -> None:
        if self.world.latency.seconds(Work.SHUTDOWN) > self.timeout_s:
            await self.task.sleep(self.timeout_s)
            raise PveError("container did not stop")
        await self.task.spend(Work.SHUTDOWN)
        with self.task.step():
            stop_container(self.world, self.vmid)

    def _local_volumes(self) -> list[str]:
        found: dict[str, bool] = {}
        problems: dict[str, str] = {}
        for volid, in_snapshot in self._list_volumes():
            storage, _ = parse_volume_id(volid)
            config = self.world.storages.require(storage, self.source)
            if self.world.storages.is_shared(config):
                if not in_snapshot:
                    self._log(f"volume '{volid}' is on shared storage '{storage}'")
                continue
            found[volid] = found.get(volid, True) and in_snapshot
            problem = self._problem(config, volid, in_snapshot=in_snapshot)
            if problem is not None:
                problems.setdefault(volid, problem)
        for volid in sorted(found):
            where = "referenced by snapshot(s)" if found[volid] else "in current VM config"
            self._log(f"found local volume '{volid}' ({where})")
        for volid in sorted(problems):
            self._log(f"WARN: can't migrate local volume '{volid}': {problems[volid]}")
        if problems:
            raise PveError("can't migrate CT - check log")
        return sorted(found)

    def _list_volumes(self) -> Iterator[tuple[str, bool]]:
        """Yield every volume of the container, and whether it is one of a snapshot."""
        guest = self._guest()
        snapshots = [(found["config"], True) for found in guest["snapshots"].values()]
        for config, in_snapshot in (*snapshots, (guest["config"], False)):
            for _, point in mountpoints.each_volume(self.world.facts, config, unused=True):
                if mountpoints.mount_type(str(point["volume"])) is MountType.VOLUME:
                    yield str(point["volume"]), in_snapshot

    def _problem(self, config: Document, volid: str, *, in_snapshot: bool) -> str | None:
        if owner_of(volid) != self.vmid:
            return f"owned by other guest (owner = {owner_of(volid)})"
        if in_snapshot and config["type"] not in _WITH_SNAPSHOTS:
            return "non-migratable snapshot exists"
        if config["type"] not in _MIGRATABLE:
            return f"storage type '{config['type']}' not supported"
        base = images.base_in_name(volid)
        return None if base is None else f"clone of '{base}'"

    def _new_volume(self, volid: str, storage: str, volume: Document) -> NewVolume:
        """Return the copy on the target, under another name where that of the volume is taken there."""
        kind = type_of(self.world.storages.config(storage))
        chosen = str(volume["format"]) if volume["format"] in kind.formats else "raw"
        name = name_in_format(volid, chosen, files=kind.files)
        taken = f"{storage}:{self.vmid}/{name}" if kind.files else f"{storage}:{name}"
        return NewVolume(
            storage=storage,
            node=self.target,
            vmid=self.vmid,
            size=int(volume["size"]),
            format=chosen,
            name=name if self.world.volumes.find(taken, self.target) is None else None,
            content="rootdir",
            image=volume.get("image"),
        )

    def _hand_over(self) -> None:
        guest = self._guest()
        config = {key: value for key, value in guest["config"].items() if key != "lock"}
        snapshots = {
            name: {**found, "config": self._rewrite_volumes(found["config"])}
            for name, found in guest["snapshots"].items()
        }
        self.world.guests.update(
            guest,
            node=self.target,
            config=self._rewrite_volumes(config),
            pending=self._rewrite_volumes(guest["pending"]),
            snapshots=snapshots,
        )
        for volid in self.copied:
            self.world.volumes.free(volid, self.source)
        switch_replication(self.world.store, self.vmid, self.target)

    def _rewrite_volumes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration that refers to the copies on the target."""
        changed = dict(config)
        for key, point in mountpoints.each_volume(self.world.facts, config, unused=True):
            copy = self.copied.get(str(point["volume"]))
            if copy is not None:
                point["volume"] = copy
                changed[key] = mountpoints.print_mount_point(self.world.facts, key, point)
        return changed

    def _storage_for(self, storage: str) -> str:
        return self.storages.get(storage, self.storages.get("", storage))
