"""One backup task: every guest of it in turn, as vzdump works through its list."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.power import start_container, stop_container
from pvelab.api.nodes.qemu.power import start_guest, stop_guest
from pvelab.api.nodes.storage.prune import prune_group
from pvelab.api.nodes.vzdump.archives import archive_of, archive_size, guest_volumes
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.world.generate import new_uuid
from pvelab.world.guests.rows import guest_name
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage.volume_names import file_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["BackupJob", "check_notes_template"]

_MINUTE_S = 60
_ENDINGS = {"zstd": "zst", "gzip": "gz", "lzo": "lzo", "1": "lzo"}
_MOST_PROTECTED = 5
_VARIABLE = re.compile(r"\{\{([^\s{}]+)\}\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def check_notes_template(template: str) -> str | None:
    """Return what is wrong with a template of notes, or None."""
    if "\n" in template:
        return "contains a line feed"
    wrong = [
        f"escape sequence '\\{found[1]}' at char {found.start()}"
        for found in _ESCAPE.finditer(template)
        if found[1] not in ("n", "\\")
    ]
    wrong += [
        f"variable '{found[1]}' at char {found.start() + 2}"
        for found in _VARIABLE.finditer(template)
        if found[1] not in ("cluster", "guestname", "node", "vmid")
    ]
    return f"found unknown: {', '.join(wrong)}" if wrong else None


@dataclass(slots=True, kw_only=True)
class BackupJob:
    """The backups of some guests of one node.

    Attributes:
        world: The lab.
        node: Where it runs.
        vmids: The guests, those that do not exist among them.
        options: What the call says, its texts of several values taken apart.
        command: The same as a command line, for the log.
        skipped: The guests of other nodes.
    """

    world: World
    node: str
    vmids: list[int]
    options: Mapping[str, Any]
    command: str
    skipped: list[int] = field(default_factory=list)

    @property
    def storage(self) -> str:
        """The storage of the archives."""
        return str(self.options.get("storage") or "local")

    async def run(self, task: Task) -> None:
        """Make the backups one after the other; a guest that fails does not keep the next from it.

        Raises:
            PveError: The storage cannot be used, or guests failed.
        """
        config = self._check_storage()
        wait_s = float(self.options.get("lockwait", 180)) * _MINUTE_S
        text = "can't acquire lock '/var/run/vzdump.lock' - got timeout"
        async with self.world.locks.hold(f"vzdump-{self.node}", text, wait_s):
            task.log(f"INFO: starting new backup job: {self.command}")
            if self.skipped:
                task.log(f"INFO: skip external VMs: {', '.join(map(str, sorted(self.skipped)))}")
            failed = 0
            for vmid in sorted(self.vmids):
                failed += not await _GuestBackup(job=self, task=task, vmid=vmid, config=config).run()
            if failed:
                task.log("INFO: Backup job finished with errors")
                raise PveError("job errors")
            task.log("INFO: Backup job finished successfully")

    def keep(self, config: Document) -> dict[str, int]:
        """Return the rules for old backups: those of the call, else of the storage, else all are kept."""
        own = self.options.get("prune-backups")
        text = str(config.get("prune-backups") or "keep-all=1")
        found: Mapping[str, Any] = own if own else dict(part.split("=", 1) for part in text.split(","))
        return {key: int(value) for key, value in found.items()}

    def _check_storage(self) -> Document:
        storages = self.world.storages
        try:
            config = storages.require(self.storage, self.node)
        except PveError as err:
            raise PveError(f"could not activate storage '{self.storage}': {err.text}") from err
        if "backup" not in storages.content_types(config):
            text = f"can't use storage '{self.storage}' for backups - wrong content type"
            raise PveError(f"could not get storage information for '{self.storage}': {text}")
        return config


@dataclass(slots=True, kw_only=True)
class _GuestBackup:
    """The backup of one guest."""

    job: BackupJob
    task: Task
    vmid: int
    config: Document
    restart: bool = False
    locked: bool = False

    async def run(self) -> bool:
        """Make the backup; False if it failed, for a reason that is in the log."""
        started, problem = self.job.world.clock.now(), None
        # Whatever ends it, the end of its task too: the guest is not to stay locked.
        with undo_on_failure(self._clean_up):
            try:
                await self._run()
            except PveError as err:
                problem = err.text
        self._clean_up()
        if self.restart:
            await self._start_again()
        if problem is not None:
            self._log_line("ERROR", f"Backup of VM {self.vmid} failed - {problem}")
            self._log_line("INFO", f"Failed at {self._stamp('%F %H:%M:%S')}")
            return False
        seconds = int(self.job.world.clock.now() - started)
        spent = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        self._log_line("INFO", f"Finished Backup of VM {self.vmid} ({spent})")
        self._log_line("INFO", f"Backup finished at {self._stamp('%F %H:%M:%S')}")
        return True

    async def _run(self) -> None:
        world, options = self.job.world, self.job.options
        guest = world.guests.get(self.vmid)
        if guest is None or guest["node"] != self.job.node:
            raise PveError(f"unable to find VM '{self.vmid}'")
        kind, running = str(guest["type"]), guest["status"] == "running"
        mode = str(options.get("mode", "snapshot"))
        self._check_limits(kind)
        self._check_managed(kind, mode)
        self._log_line("INFO", f"Starting Backup of VM {self.vmid} ({kind})")
        self._log_line("INFO", f"Backup started at {self._stamp('%F %H:%M:%S')}")
        self._log_line("INFO", f"status = {guest['status']}")
        async with world.locks.guest(kind, self.vmid):
            with self.task.step():
                self._lock()
        mode = mode if running else "stop"
        self._describe(guest, mode)
        if mode == "stop" and running:
            self._log_line("INFO", "stopping virtual guest")
            await self.task.spend(Work.SHUTDOWN)
            with self.task.step():
                (stop_guest if kind == "qemu" else stop_container)(world, self.vmid)
            self.restart = True
        await self._archive(kind)

    def _check_managed(self, kind: str, mode: str) -> None:
        sid = f"{'vm' if kind == 'qemu' else 'ct'}:{self.vmid}"
        managed = self.job.world.store.get("ha_resources", sid)
        if mode == "stop" and managed is not None and managed.get("state", "started") == "started":
            raise PveError(
                "Cannot execute a backup with stop mode on a HA managed and enabled Service. Use snapshot"
                " mode or disable the Service."
            )

    def _check_limits(self, kind: str) -> None:
        options, keep = self.job.options, self.job.keep(self.config)
        limit = 0 if keep.get("keep-all") else sum(keep.values())
        backups = [
            volume
            for volume in self.job.world.storages.volumes(self.job.storage, self.job.node)
            if volume["content"] == "backup" and volume.get("vmid") == self.vmid
        ]
        protected = sum(1 for volume in backups if volume.get("protected"))
        if options.get("protected"):
            most = int(self.config.get("max-protected-backups", _MOST_PROTECTED))
            if -1 < most <= protected:
                text = f"The number of protected backups per guest is limited to {most}"
                raise PveError(f"{text} on storage '{self.job.storage}'")
        elif limit and not options.get("remove", 1) and len(backups) - protected >= limit:
            raise PveError(
                f"There is a max backup limit of {limit} enforced by the target storage or the vzdump"
                " parameters. Either increase the limit or delete old backups."
            )

    def _lock(self) -> None:
        guest = self._guest()
        self.job.world.guests.check_unlocked(guest)
        self.job.world.guests.update(guest, config={**guest["config"], "lock": "backup"})
        self.locked = True

    def _describe(self, guest: Document, mode: str) -> None:
        qemu = guest["type"] == "qemu"
        self._log_line("INFO", f"{'VM' if qemu else 'CT'} Name: {guest_name(guest)}")
        for volume in guest_volumes(self.job.world, guest):
            if qemu and volume.included:
                size = f"{volume.size / 2**30:g}G"
                self._log_line("INFO", f"include disk '{volume.key}' '{volume.volume}' {size}")
            elif qemu:
                self._log_line("INFO", f"exclude disk '{volume.key}' '{volume.volume}' ({volume.reason})")
            else:
                word = "including" if volume.included else f"excluding {volume.reason}"
                self._log_line("INFO", f"{word} mount point {volume.key} in backup")
        self._log_line("INFO", f"backup mode: {mode}")
        if self.job.options.get("bwlimit"):
            self._log_line("INFO", f"bandwidth limit: {self.job.options['bwlimit']} KiB/s")
        self._log_line("INFO", f"ionice priority: {self.job.options.get('ionice', 7)}")
        if qemu and guest["snapshots"]:
            self._log_line("INFO", "snapshots found (not included into backup)")
        if qemu and (guest["pending"] or guest["pending_delete"]):
            self._log_line("INFO", "pending configuration changes found (not included into backup)")

    async def _archive(self, kind: str) -> None:
        world, node, task = self.job.world, self.job.node, self.task
        server = self.config["type"] == "pbs"
        name, compression = self._name(kind, server=server)
        volid = f"{self.job.storage}:backup/{name}"
        place = name if server else f"{file_folder(self.config, 'backup')}/{name}"
        self._log_line(
            "INFO", f"creating {'Proxmox Backup Server' if server else 'vzdump'} archive '{place}'"
        )
        if kind == "qemu":
            self._log_line("INFO", f"started backup task '{new_uuid()}'")
        await task.spend(Work.BACKUP)
        archive = archive_of(world, self._guest())
        size = archive_size(archive, compression)
        with task.step():
            self._require_space(place, size)
            world.volumes.add(volid, node, size, **self._fields(kind, name, archive, server=server))
            if not server:
                self._log_line("INFO", f"archive file size: {_format_size(size)}")
            self._prune(kind)

    def _fields(self, kind: str, name: str, archive: Mapping[str, Any], *, server: bool) -> dict[str, Any]:
        ending = name.partition(".")[2]
        fields: dict[str, Any] = {
            "content": "backup",
            "format": f"pbs-{'vm' if kind == 'qemu' else 'ct'}" if server else ending,
            "vmid": self.vmid,
            "archive": archive,
        }
        template = str(self.job.options.get("notes-template", ""))
        if template:
            self._log_line("INFO", "adding notes to backup")
            fields["notes"] = self._notes(template)
        if self.job.options.get("protected"):
            self._log_line("INFO", "marking backup as protected")
            fields["protected"] = 1
        return fields

    def _name(self, kind: str, *, server: bool) -> tuple[str, str]:
        if server:
            return f"{'vm' if kind == 'qemu' else 'ct'}/{self.vmid}/{self._stamp('%FT%TZ')}", "zst"
        compression = _ENDINGS.get(str(self.job.options.get("compress", "0")), "")
        ending = "vma" if kind == "qemu" else "tar"
        stamp = self._stamp("%Y_%m_%d-%H_%M_%S")
        return f"vzdump-{kind}-{self.vmid}-{stamp}.{ending}" + (
            f".{compression}" if compression else ""
        ), compression

    def _require_space(self, place: str, size: int) -> None:
        storages, storage, node = self.job.world.storages, self.job.storage, self.job.node
        if size > storages.total(storage, node) - storages.used(storage, node):
            raise PveError(f"vma_queue_write: write error - {place}: No space left on device")

    def _notes(self, template: str) -> str:
        guest = self._guest()
        state = self.job.world.store.get("cluster", "state") or {}
        known = {
            "cluster": str(state.get("name", "standalone node")),
            "guestname": guest_name(guest),
            "node": self.job.node,
            "vmid": str(self.vmid),
        }
        unescaped = _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], template)
        return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), unescaped)

    def _prune(self, kind: str) -> None:
        keep = self.job.keep(self.config)
        if not self.job.options.get("remove", 1) or keep.get("keep-all"):
            return
        printed = ", ".join(f"{key}={keep[key]}" for key in sorted(keep))
        self._log_line("INFO", f"prune older backups with retention: {printed}")
        world, storage, node = self.job.world, self.job.storage, self.job.node
        removed = 0
        for entry in prune_group(world, node, storage, keep=keep, vmid=self.vmid, kind=kind):
            self._log_line("INFO", f"removing backup '{entry}'")
            world.volumes.free(entry, node)
            removed += 1
        extra = " not covered by keep-retention policy" if removed else ""
        self._log_line("INFO", f"pruned {removed} backup(s){extra}")

    def _clean_up(self) -> None:
        guest = self.job.world.guests.get(self.vmid)
        if self.locked and guest is not None and guest["config"].get("lock") == "backup":
            with self.task.step():
                unlocked = {key: value for key, value in guest["config"].items() if key != "lock"}
                self.job.world.guests.update(guest, config=unlocked)
        self.locked = False

    async def _start_again(self) -> None:
        self._log_line("INFO", "restarting vm")
        start = start_guest if self._guest()["type"] == "qemu" else start_container
        try:
            await start(self.job.world, self.task, self.vmid, self.job.node)
        except PveError as err:
            self.task.log(err.text)
        else:
            self._log_line("INFO", "guest is online again after <1 seconds")

    def _guest(self) -> Document:
        guest = self.job.world.guests.get(self.vmid)
        if guest is None:
            raise PveError(f"unable to find VM '{self.vmid}'")
        return guest

    def _log_line(self, level: str, text: str) -> None:
        self.task.log(f"{level}: {text}")

    def _stamp(self, form: str) -> str:
        return datetime.datetime.fromtimestamp(int(self.job.world.clock.now()), datetime.UTC).strftime(form)


def _format_size(size: int) -> str:
    kib = size // 2**10
    if kib < 2**10:
        return f"{kib}KB"
    mib = size // 2**20
    if mib < 2**10:
        return f"{mib}MB"
    gib = size / 2**30
    return f"{gib:.2f}GB" if gib < 2**10 else f"{gib / 2**10:.2f}TB"
