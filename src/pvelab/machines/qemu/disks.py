"""The disks of real guests: one folder for each, with an overlay for each disk on the image it was made from.

`<folder>/<vmid>/now/<option>.qcow2` is what is on a disk, `<folder>/<vmid>/at/<snapshot>/...` what was on it
at a snapshot. The image itself stays where the lab keeps the bytes of files, and is never written.
"""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from pvelab.machines.machine import MachineError
from pvelab.machines.qemu.programs import IMAGES
from pvelab.world.guests.lineage import disk_keys, image_in
from pvelab.world.storage.contents import is_disk_image
from stackyard.base import directories, process

if TYPE_CHECKING:
    from pathlib import Path

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Disks"]

_TIMEOUT_S = 600.0


class Disks:
    """Keeps the disks of all guests of a lab.

    Args:
        world: The lab.
        folder: Where.
    """

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder

    def place(self, vmid: int, snapshot: str | None = None) -> Path:
        """Return the folder of a guest's disks, as they are or as they were at a snapshot."""
        own = self._folder / str(vmid)
        return own / "now" if snapshot is None else own / "at" / snapshot

    async def prepare(self, guest: Document) -> dict[str, Path]:
        """Make the disks of a guest that are not there yet, and return them all by their option.

        Raises:
            MachineError: The lab does not have the bytes of an image, or a disk cannot be created.
        """
        place = self.place(int(guest["vmid"]))
        found: dict[str, Path] = {}
        directories.ensure_private(place)
        for key in disk_keys(guest["config"]):
            volid = str(guest["config"][key]).partition(",")[0]
            volume = self._world.volumes.find(volid, str(guest["node"])) if ":" in volid else None
            if volume is not None:
                found[key] = place / f"{key}.qcow2"
                await self._prepare_one(guest, volume, found[key])
        return found

    async def copy(self, source: Path, target: Path) -> None:
        """Make one folder of disks what another one is; nothing if that is not there."""
        await asyncio.to_thread(_copy, source, target)

    def remove(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove what is kept of a guest, or of one of its snapshots."""
        gone = self._folder / str(vmid) if snapshot is None else self.place(vmid, snapshot)
        shutil.rmtree(gone, ignore_errors=True)

    async def _prepare_one(self, guest: Document, volume: Document, path: Path) -> None:
        size, backing = int(volume["size"]), self._list_backing(guest, volume)
        if _exists(path):
            # The image may be somewhere else than it was: the lab's folder can be moved.
            if backing:
                await _image("rebase", "-u", *backing, str(path))
        else:
            await _image(
                "create", "-q", "-f", "qcow2", *backing, str(path), *([] if backing else [str(size)])
            )
        await _image("resize", "-q", str(path), str(size), may_fail=True)

    def _list_backing(self, guest: Document, volume: Document) -> list[str]:
        image = image_in(volume)
        if image is None:
            return []
        if "sha256" not in image:
            raise MachineError(
                f"The lab does not have the bytes of {image['name']}, from which VM {guest['vmid']} is made.",
                remedy="Upload the image, or start the lab with --allow-downloads and download it again.",
            )
        path = self._world.blobs.path(str(image["sha256"]))
        kind = next((kind for kind in ("qcow2", "vmdk") if is_disk_image(path, kind)), "raw")
        return ["-b", str(path.absolute()), "-F", kind]


async def _image(verb: str, *words: str, may_fail: bool = False) -> None:
    """Run qemu-img; a disk that is larger already cannot be made smaller, which is no failure."""
    command = process.Command(
        argv=(IMAGES, verb, *words), env=process.environment(), timeout_s=_TIMEOUT_S, grace_s=2.0
    )
    try:
        await process.run(command, check=not may_fail)
    except process.ProcessFailedError as err:
        raise MachineError(f"A disk cannot be made: {err.stderr.strip()}.") from err


def _exists(path: Path) -> bool:
    return path.exists()


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir():
        directories.ensure_private(target)
        for path in source.glob("*.qcow2"):
            shutil.copyfile(path, target / path.name)
