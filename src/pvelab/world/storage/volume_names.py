"""Names of volumes: what a name says of the content, and where a file based storage keeps it.

`local:iso/noble.img` is a file under `<path>/template/iso`, `local:100/vm-100-disk-0.raw` an image of guest
100, `local-lvm:vm-100-disk-0` a logical volume.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.storage.storages import type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FILE_CONTENTS",
    "VolumeName",
    "file_folder",
    "list_format",
    "normal_filename",
    "parse_name",
    "path_of",
    "volume_at",
]

_SAFE = r"[a-zA-Z0-9\-.+=_]"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "iso": re.compile(r"[^/]+\.(?:iso|img)", re.IGNORECASE),
    "vztmpl": re.compile(r"[^/]+\.(?:(tar)|tar\.(gz|xz|zst|bz2))", re.IGNORECASE),
    "backup": re.compile(r"[^/]+\.(tgz|(?:tar|vma)(?:\.(?:gz|lzo|zst|bz2))?)"),
    "snippets": re.compile(r"(?!\.\.?$)[^/]+"),
    "import": re.compile(rf"(?:{_SAFE}| )+\.(ova|ovf|qcow2|raw|vmdk)"),
}
_FOLDERS: Mapping[str, str] = {
    "images": "images",
    "rootdir": "private",
    "iso": "template/iso",
    "vztmpl": "template/cache",
    "backup": "dump",
    "snippets": "snippets",
    "import": "import",
}
FILE_CONTENTS = frozenset(_PATTERNS)
_IMAGE = re.compile(r"(?:(\d+)/(\S+)/)?(\d+)/([^/\s]+)")
_BLOCK = re.compile(r"(?:((?:base|basevol)-\d+-\S+)/)?((?:vm|base|subvol|basevol)-(\d+)-\S+)")
_BACKUP = re.compile(r"vzdump-(?:openvz|lxc|qemu)-(\d+)-.+")
_SNAPSHOT = re.compile(r"backup/(vm|ct)/(\d+)/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TYPE_WORDS = {"lvm": "lvm", "lvmthin": "lvm", "zfspool": "zfs", "zfs": "zfs", "rbd": "rbd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeName:
    """What the name of a volume says: `content`, the plain `name`, the `format` and the owning guest."""

    content: str
    name: str
    format: str
    vmid: int | None = None


def normal_filename(filename: str) -> str:
    """Return the name that Proxmox gives an uploaded or downloaded file."""
    plain = re.sub(r"(?s)^.*[/\\]", "", filename.rstrip("\n"))
    return re.sub(r"[^a-zA-Z0-9_.-]", "_", plain)


def parse_name(config: Mapping[str, Any], name: str) -> VolumeName:
    """Read the name of a volume, the part after the colon.

    Raises:
        PveError: A storage of this type has no volumes of such a name.
    """
    return _parse_file_name(name) if type_of(config).files else _parse_block_name(config, name)


def list_format(content: str, name: str) -> str:
    """Return the format that lists show for a file."""
    found = _PATTERNS[content].fullmatch(name)
    match content:
        case "iso":
            return "iso"
        case "snippets":
            return "snippet"
        case "vztmpl":
            return "tar" if found is None or found[1] else f"t{found[2]}"
        case _:
            return found[1] if found else "raw"


def file_folder(config: Mapping[str, Any], content: str) -> str:
    """Return the folder of a file based storage that holds one kind of content."""
    overrides = dict(part.split("=", 1) for part in split_list(str(config.get("content-dirs", ""))))
    folder = overrides.get(content, _FOLDERS[content]).strip("/")
    return f"{str(config['path']).rstrip('/')}/{folder}"


def path_of(config: Mapping[str, Any], volid: str) -> str:
    """Return where a node sees a volume.

    Raises:
        PveError: The name cannot be read.
    """
    storage, _, name = volid.partition(":")
    parsed = parse_name(config, name)
    if type_of(config).files:
        folder = file_folder(config, "images" if parsed.content == "rootdir" else parsed.content)
        return (
            f"{folder}/{parsed.vmid}/{parsed.name}"
            if parsed.content == "images"
            else f"{folder}/{parsed.name}"
        )
    own = name.rpartition("/")[2]
    match config["type"]:
        case "lvm" | "lvmthin":
            return f"/dev/{config.get('vgname', storage)}/{own}"
        case "zfspool" if parsed.format == "subvol":
            return f"{config.get('mountpoint') or '/' + str(config.get('pool', storage))}/{own}"
        case "zfspool":
            return f"/dev/zvol/{config.get('pool', storage)}/{own}"
        case "rbd":
            return f"rbd:{config.get('pool', 'rbd')}/{own}"
        case _:
            return f"{storage}:{name}"


def volume_at(storages: Mapping[str, Mapping[str, Any]], path: str) -> str | None:
    """Return the id of the file that is (or would be) at a path of a file based storage, or None.

    Where storages lie inside each other, the innermost one has the file.
    """
    found: tuple[int, str] | None = None
    for storage, config in storages.items():
        for content in FILE_CONTENTS if type_of(config).files and config.get("path") else ():
            folder = file_folder(config, content)
            name = path.removeprefix(f"{folder}/")
            if name != path and _PATTERNS[content].fullmatch(name):
                longest = (len(folder), f"{storage}:{content}/{name}")
                found = longest if found is None or longest[0] > found[0] else found
    return None if found is None else found[1]


def _parse_file_name(name: str) -> VolumeName:
    image = _IMAGE.fullmatch(name)
    if image:
        return _image(image[4], int(image[3]))
    content, _, plain = name.partition("/")
    pattern = _PATTERNS.get(content)
    found = pattern.fullmatch(plain) if pattern else None
    if found is None:
        raise PveError(f"unable to parse directory volume name '{name}'")
    if content == "backup":
        owner = _BACKUP.fullmatch(plain)
        return VolumeName(content=content, name=plain, format="raw", vmid=int(owner[1]) if owner else None)
    return VolumeName(content=content, name=plain, format=found[1] if content == "import" else "raw")


def _image(name: str, vmid: int) -> VolumeName:
    suffix = name.rpartition(".")[2]
    if suffix in ("raw", "qcow2", "vmdk", "subvol"):
        return VolumeName(content="images", name=name, format=suffix, vmid=vmid)
    raise PveError(f"unable to parse volume filename '{name}'")


def _parse_block_name(config: Mapping[str, Any], name: str) -> VolumeName:
    if config["type"] == "pbs":
        return _parse_snapshot_name(name)
    found = _BLOCK.fullmatch(name)
    if not found:
        word = _TYPE_WORDS.get(str(config["type"]), str(config["type"]))
        raise PveError(f"unable to parse {word} volume name '{name}'")
    chosen = "subvol" if found[2].startswith(("subvol-", "basevol-")) else "raw"
    return VolumeName(content="images", name=found[2], format=chosen, vmid=int(found[3]))


def _parse_snapshot_name(name: str) -> VolumeName:
    """Read the name of a backup on a backup server: `backup/vm/100/2026-01-31T20:00:00Z`."""
    found = _SNAPSHOT.fullmatch(name)
    if found is None:
        raise PveError(f"unable to parse PBS volume name '{name}'")
    return VolumeName(
        content="backup", name=name.removeprefix("backup/"), format=f"pbs-{found[1]}", vmid=int(found[2])
    )
