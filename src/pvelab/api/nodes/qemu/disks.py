"""Making the volumes that a VM's drives ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.server.problems import PveError
from pvelab.world.guests.lineage import image_in
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.allocation import Worker, allocate, free_all
from pvelab.world.storage.contents import disk_size
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import NewVolume

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.nodes.qemu.drives import Drive
    from pvelab.world.world import World

__all__ = ["CLOUDINIT_SIZE", "TPM_SIZE", "DiskMaker", "efi_size"]

CLOUDINIT_SIZE = 4 * 2**20
TPM_SIZE = 4 * 2**20

_GIB = 2**30
_EFI_SIZES = {"4m": 528 * 1024, "2m": 128 * 1024}


def efi_size(drive: Mapping[str, Any]) -> int:
    """Return how large the variables of an EFI disk are."""
    return _EFI_SIZES[str(drive.get("efitype", "2m"))]


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
            PveError: A volume does not exist or cannot be created; what was created is given back.
        """
        printed: dict[str, str] = {}
        with undo_on_failure(self.undo):
            # By name, efidisk0 before scsi0, scsi10 before scsi2: the numbers of the volumes follow from it.
            for key in sorted(drives.drive_keys(settings)):
                drive = drives.parse_drive(self.world.facts, key, str(settings[key]))
                await self._create_one(key, drive, {**self.config, **printed})
                printed[key] = drives.print_drive(self.world.facts, key, drive)
        return printed

    def undo(self) -> None:
        """Give back every volume that was created."""
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
        kind = type_of(self.world.storages.config(self._require_storage(storage)))
        chosen = str(drive.pop("format", "qcow2" if kind.files else "raw"))
        name = f"vm-{self.vmid}-cloudinit" + (f".{chosen}" if kind.files else "")
        drive |= {
            "file": await self._allocate(storage, CLOUDINIT_SIZE, chosen, name),
            "media": "cdrom",
            "size": CLOUDINIT_SIZE,
        }
        self._log_created(key, drive)

    async def _create_disk(self, key: str, drive: Drive, storage: str | None, size: int) -> None:
        source, chosen = drive.pop("import-from", None), drive.pop("format", None)
        image = None
        if source is not None:
            size, chosen = self._source(str(source), self._require_storage(storage), chosen)
            image = image_in(self.world.volumes.require(str(source), self.node))
        if key == "efidisk0":
            size = efi_size(drive)
        elif key == "tpmstate0":
            size = TPM_SIZE
        volid = await self._allocate(storage, size, chosen, image=image)
        if self.config.get("template"):
            self.made.remove(volid)
            with self.worker.step():
                volid = images.make_base(self.world, volid, self.node)
            self.made.append(volid)
        drive |= {"file": volid, "size": int(self.world.volumes.require(volid, self.node)["size"])}
        self._log_created(key, drive)

    def _use_existing(self, drive: Drive) -> None:
        volume = self.world.volumes.find(str(drive["file"]), self.node)
        if volume is None:
            raise PveError(f"volume {drive['file']} does not exist")
        drive["size"] = volume["size"]
        drive.pop("format", None)

    def _source(self, source: str, storage: str, chosen: str | None) -> tuple[int, str]:
        """Return the size and the format of a disk that is a copy of another volume."""
        if source.startswith("/"):
            raise PveError(f"cannot import from '{source}' - the lab has no files outside its storages")
        volume = self.world.volumes.require(source, self.node)
        if drives.is_cloudinit({"file": source}):
            raise PveError(f"cannot import from '{source}' - cannot import from cloudinit disk")
        kind = type_of(self.world.storages.config(storage))
        wanted = chosen or str(volume.get("format", "raw"))
        size = disk_size(volume)
        return size, wanted if wanted in kind.formats else kind.default_format

    async def _allocate(
        self,
        storage: str | None,
        size: int,
        chosen: str | None,
        name: str | None = None,
        *,
        image: Mapping[str, Any] | None = None,
    ) -> str:
        new = NewVolume(
            storage=self._require_storage(storage),
            node=self.node,
            vmid=self.vmid,
            size=size,
            format=chosen,
            name=name,
            image=image,
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

    def _require_storage(self, storage: str | None) -> str:
        if not storage:
            raise PveError("no storage ID specified (and no default storage)")
        return storage

    def _log_created(self, key: str, drive: Drive) -> None:
        printed = drives.print_drive(self.world.facts, key, drive)
        self.worker.log(f"{key}: successfully created disk '{printed}'")
