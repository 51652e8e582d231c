"""Making the volumes that a VM's drives ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.lab.allocation import Worker, allocate, free_all
from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu import drives
from stackyard.lab.storages import type_of
from stackyard.lab.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.resources.qemu.drives import Drive
    from stackyard.lab.world import World

__all__ = ["DiskMaker"]

_GIB = 2**30
_CLOUDINIT_SIZE = 4 * 2**20
_TPM_SIZE = 4 * 2**20
_EFI_SIZES = {"4m": 528 * 1024, "2m": 128 * 1024}


@dataclass(slots=True, kw_only=True)
class DiskMaker:
    """Makes the volumes of one VM; `made` is what to give back if the rest of the work fails.

    Attributes:
        world: The lab.
        worker: Whose work it is.
        node: The node of the VM.
        vmid: The VM.
        config: What the VM has already, for what may be there only once.
        default_storage: The storage of disks that name none.
        made: The volumes allocated so far.
    """

    world: World
    worker: Worker
    node: str
    vmid: int
    config: Mapping[str, Any]
    default_storage: str | None = None
    made: list[str] = field(default_factory=list)

    async def create(self, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the drives among some settings as they are kept, with volumes allocated where asked for.

        Raises:
            PveError: A volume does not exist or cannot be made; what was made is given back.
        """
        printed: dict[str, str] = {}
        try:
            for key in drives.drive_keys(settings):
                drive = drives.parse_drive(self.world.facts, key, str(settings[key]))
                await self._create_one(key, drive, {**self.config, **printed})
                printed[key] = drives.print_drive(self.world.facts, key, drive)
        except BaseException:
            self.undo()
            raise
        return printed

    def undo(self) -> None:
        """Give back every volume that was made."""
        free_all(self.world, self.worker, self.made, self.node)
        self.made.clear()

    async def _create_one(self, key: str, drive: Drive, config: Mapping[str, Any]) -> None:
        volume = str(drive["file"])
        new = drives.is_new_disk(volume)
        if volume in ("none", "cdrom"):
            drive.pop("size", None)
        elif volume == "cloudinit" or volume.endswith(":cloudinit"):
            await self._create_cloudinit(key, drive, config)
        elif new is not None and not drives.is_cdrom(drive):
            await self._create_disk(key, drive, new[0] or self.default_storage, int(new[1] * _GIB))
        elif not volume.startswith("/"):
            self._use_existing(drive)

    async def _create_cloudinit(self, key: str, drive: Drive, config: Mapping[str, Any]) -> None:
        attached = self._cloudinit_key(config, but=key)
        if attached is not None:
            raise PveError(f"{key} - cloud-init drive is already attached at '{attached}'")
        storage = str(drive["file"]).rpartition(":")[0] or self.default_storage
        kind = type_of(self.world.storages.config(self._given(storage)))
        chosen = str(drive.pop("format", "qcow2" if kind.files else "raw"))
        name = f"vm-{self.vmid}-cloudinit" + (f".{chosen}" if kind.files else "")
        drive |= {
            "file": await self._allocate(storage, _CLOUDINIT_SIZE, chosen, name),
            "media": "cdrom",
            "size": _CLOUDINIT_SIZE,
        }
        self._say_made(key, drive)

    async def _create_disk(self, key: str, drive: Drive, storage: str | None, size: int) -> None:
        source = drive.pop("import-from", None)
        if source is not None:
            size = self._source_size(str(source))
        if key == "efidisk0":
            size = _EFI_SIZES[str(drive.get("efitype", "2m"))]
        elif key == "tpmstate0":
            size = _TPM_SIZE
        chosen = drive.pop("format", None)
        drive["file"] = await self._allocate(storage, size, chosen)
        drive["size"] = size
        self._say_made(key, drive)

    def _use_existing(self, drive: Drive) -> None:
        volume = self.world.volumes.find(str(drive["file"]), self.node)
        if volume is None:
            raise PveError(f"volume {drive['file']} does not exist")
        drive["size"] = volume["size"]
        drive.pop("format", None)

    def _source_size(self, source: str) -> int:
        if source.startswith("/"):
            raise PveError(f"cannot import from '{source}' - the lab has no files outside its storages")
        return int(self.world.volumes.require(source, self.node)["size"])

    async def _allocate(
        self, storage: str | None, size: int, chosen: str | None, name: str | None = None
    ) -> str:
        new = NewVolume(
            storage=self._given(storage),
            node=self.node,
            vmid=self.vmid,
            size=size,
            format=chosen,
            name=name,
        )
        volid = await allocate(self.world, self.worker, new)
        self.made.append(volid)
        return volid

    def _cloudinit_key(self, config: Mapping[str, Any], but: str) -> str | None:
        for key in drives.drive_keys(config):
            if key != but and drives.is_cloudinit(
                drives.parse_drive(self.world.facts, key, str(config[key]))
            ):
                return key
        return None

    def _given(self, storage: str | None) -> str:
        if not storage:
            raise PveError("no storage ID specified (and no default storage)")
        return storage

    def _say_made(self, key: str, drive: Drive) -> None:
        printed = drives.print_drive(self.world.facts, key, drive)
        self.worker.log(f"{key}: successfully created disk '{printed}'")


def owner_of(volid: str) -> int | None:
    """Return the guest that a volume is named for, or None."""
    _, name = parse_volume_id(volid)
    parts = name.rpartition("/")[2].split("-")
    named = len(parts) > 2 and parts[0] in ("vm", "base", "subvol", "basevol") and parts[1].isdigit()
    return int(parts[1]) if named else None
