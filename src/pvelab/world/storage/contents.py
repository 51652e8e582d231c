"""Files in storages: put there with their bytes or as stand-ins, counted against the size of the storage.

A volume document of a file has, beside what `volumes` says, `sha256` (its bytes are in `blobs`), `url` where
it was downloaded from, `checksums` that are believed of a stand-in, `virtual_size` where the file is an image
of a disk with another size, `oci` for an image from a registry, and `talos` for a Talos image.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.talos.images import talos_at_url, talos_in_file
from pvelab.world.storage.volume_names import list_format, parse_name, path_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pathlib import Path

    from pvelab.world.storage.blobs import Blob
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["disk_size", "image_disk_size", "is_disk_image", "put_file", "put_stand_in", "require_space"]

_QCOW2 = b"QFI\xfb"
# What images of cloud systems have inside, give or take.
_STAND_IN_DISK = 7 * 2**29


def put_file(world: World, volid: str, node: str, blob: Blob, **fields: Any) -> Document:
    """Put a file with its bytes into a storage, in place of one of the same name, in the running transaction.

    Args:
        world: The lab.
        volid: Its volume id: `local:iso/noble.img`.
        node: The node whose storage it is.
        blob: Its bytes.
        fields: What else to remember of it.

    Raises:
        PveError: The storage cannot be used, has no such files, or is full.
    """
    path = world.blobs.path(blob.sha256)
    virtual, talos = image_disk_size(path), talos_in_file(path)
    return _put(
        world, volid, node, blob.size, sha256=blob.sha256, virtual_size=virtual, talos=talos, **fields
    )


def put_stand_in(world: World, volid: str, node: str, size: int, **fields: Any) -> Document:
    """Put a file without bytes into a storage, in the running transaction; see `put_file`.

    Raises:
        PveError: The storage cannot be used, has no such files, or is full.
    """
    virtual = _STAND_IN_DISK if volid.endswith((".img", ".qcow2", ".vmdk")) else None
    talos = talos_at_url(str(fields.get("url", "")))
    return _put(world, volid, node, size, virtual_size=virtual, talos=talos, **fields)


def disk_size(volume: Document) -> int:
    """Return how large the disk is that a volume holds: its own size, unless it is an image file."""
    return int(volume.get("virtual_size") or volume["size"])


def require_space(world: World, volid: str, node: str, size: int, text: str) -> None:
    """Refuse a file that does not fit, with a text in which `{}` is its path.

    Raises:
        PveError: The storage is full.
    """
    storage, _ = parse_volume_id(volid)
    replaced = world.volumes.find(volid, node)
    free = world.storages.total(storage, node) - world.storages.used(storage, node)
    if size > free + (0 if replaced is None else int(replaced["size"])):
        path = path_of(world.storages.config(storage), volid)
        raise PveError(text.replace("{}", path))


def image_disk_size(path: Path) -> int | None:
    """Return the size of the disk in a qcow2 file, None for any other file."""
    with path.open("rb") as stream:
        header = stream.read(32)
    if len(header) < 32 or not header.startswith(_QCOW2):
        return None
    size: int = struct.unpack(">Q", header[24:32])[0]
    return size


def is_disk_image(path: Path, kind: str) -> bool:
    """Return whether a file is an image of a kind; everything is a raw one."""
    with path.open("rb") as stream:
        start = stream.read(512)
    match kind:
        case "qcow2":
            return start.startswith(_QCOW2)
        case "vmdk":
            return start.startswith((b"KDMV", b"COWD", b"# Disk DescriptorFile"))
        case "ova":
            return start[257:262] == b"ustar"
        case _:
            return True


def _put(world: World, volid: str, node: str, size: int, **fields: Any) -> Document:
    storage, name = parse_volume_id(volid)
    parsed = parse_name(world.storages.require(storage, node), name)
    require_space(world, volid, node, size, "{}: No space left on device")
    # A backup server has formats of its own; those of files are in their endings.
    chosen = parsed.format if parsed.format.startswith("pbs-") else list_format(parsed.content, parsed.name)
    return world.volumes.add(
        volid, node, size, content=parsed.content, format=chosen, vmid=parsed.vmid, **fields
    )
