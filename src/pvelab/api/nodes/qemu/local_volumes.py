"""The volumes of a VM that are on one node only: what a migration has to copy, and what it cannot."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.storage import images
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "LocalVolume",
    "Reference",
    "Scan",
    "StorageMap",
    "check_copies",
    "new_format",
    "references",
    "scan",
]

_MIGRATABLE = frozenset(("dir", "btrfs", "zfspool", "lvmthin", "lvm"))
_STORAGE_ID = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageMap:
    """Where the volumes of each storage go: `default`, single `entries`, or to where they are."""

    entries: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None
    identity: bool = False

    @classmethod
    def parse(cls, text: str) -> StorageMap:
        """Read `1`, `target` or `source:target,...`.

        Raises:
            PveError: The text is none of these.
        """
        entries: dict[str, str] = {}
        default, identity = None, False
        for entry in split_list(text):
            source, colon, target = entry.partition(":")
            if entry == "1":
                identity = True
            elif not all(_STORAGE_ID.fullmatch(part) for part in ((source, target) if colon else (source,))):
                raise PveError(f"entry '{entry}' contains invalid ID")
            elif colon and source in entries:
                raise PveError(f"duplicate mapping for source '{source}'")
            elif colon:
                entries[source] = target
            elif default is not None:
                raise PveError("default target ID can only be provided once")
            else:
                default = entry
        if identity and (default or entries):
            raise PveError("identity mapping cannot be combined with other mappings")
        return cls(entries=entries, default=default, identity=identity)

    def target(self, storage: str) -> str:
        """Return where the volumes of a storage go."""
        return self.entries.get(storage) or self.default or storage


@dataclass(slots=True, kw_only=True)
class Reference:
    """How a VM refers to a volume; `where` is `attached`, `unused`, `snapshot`, `pending` or `generated`."""

    volid: str
    key: str
    where: str
    cdrom: bool = False
    shared: bool = False
    snapshots: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalVolume:
    """A volume to copy to another node."""

    volid: str
    target_storage: str
    where: str


@dataclass(slots=True, kw_only=True)
class Scan:
    """What a look at the volumes found: those to copy, what cannot be copied and why, other problems."""

    volumes: dict[str, LocalVolume] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def references(world: World, guest: Document) -> dict[str, Reference]:
    """Return every volume that a VM refers to; the first of attached, unused, pending, snapshot counts."""
    found: dict[str, Reference] = {}
    for reference in _all_references(world, guest):
        known = found.setdefault(reference.volid, reference)
        if known is not reference:
            known.cdrom = known.cdrom and reference.cdrom
            known.snapshots += reference.snapshots
    return found


def scan(world: World, guest: Document, target: str, storage_map: StorageMap) -> Scan:
    """Look at every volume of a VM that is to go to another node."""
    result = Scan()
    for volid, reference in references(world, guest).items():
        if volid == "none" or (volid.startswith("/") and reference.shared):
            continue
        if volid == "cdrom":
            result.others.append(_cdrom_problem(reference))
            continue
        try:
            local = _check(world, guest, reference, target, storage_map)
        except PveError as problem:
            result.errors[volid] = problem.text
            continue
        if local is not None:
            result.volumes[volid] = local
    return result


def _all_references(world: World, guest: Document) -> Iterator[Reference]:
    config = guest["config"]
    yield from _drives(world, config, "attached")
    for key, value in config.items():
        if key.startswith("unused"):
            yield Reference(volid=str(value), key=key, where="unused")
    if config.get("vmstate"):
        yield Reference(volid=str(config["vmstate"]), key="vmstate", where="attached")
    yield from _drives(world, guest["pending"], "pending")
    for name, snapshot in guest["snapshots"].items():
        for reference in _drives(world, snapshot["config"], "snapshot"):
            reference.snapshots.append(name)
            yield reference
        if snapshot.get("vmstate"):
            yield Reference(volid=str(snapshot["vmstate"]), key="vmstate", where="snapshot")


def _drives(world: World, config: Mapping[str, Any], where: str) -> Iterator[Reference]:
    for key in drives.drive_keys(config):
        drive = drives.parse_drive(world.facts, key, str(config[key]))
        generated = drives.is_cloudinit(drive) or key == "tpmstate0"
        yield Reference(
            volid=str(drive["file"]),
            key=key,
            where="generated" if generated and where == "attached" else where,
            cdrom=drives.is_cdrom(drive),
            shared=bool(drive.get("shared")),
        )


def _cdrom_problem(reference: Reference) -> str:
    names = ", ".join(sorted(reference.snapshots))
    text = "can't migrate local cdrom drive"
    return f"{text} (referenced in snapshot - {names})" if names else text


def _check(
    world: World, guest: Document, reference: Reference, target: str, storage_map: StorageMap
) -> LocalVolume | None:
    """Return a volume that has to be copied, None for one that all nodes see."""
    volid, node = reference.volid, str(guest["node"])
    if volid.startswith("/"):
        raise PveError("local file/device")
    storage, _ = parse_volume_id(volid)
    config = world.storages.require(storage, node)
    shared = world.storages.is_shared(config)
    goal = storage if shared else storage_map.target(storage)
    volume = world.volumes.require(volid, node)
    content = str(volume["content"])
    if content not in world.storages.content_types(world.storages.require(goal, target)):
        raise PveError(f"{volid}: content type '{content}' is not available on storage '{goal}'")
    if shared:
        return None
    if reference.cdrom and reference.where != "generated":
        raise PveError("local cdrom image")
    owner = owner_of(volid)
    if owner != guest["vmid"]:
        raise PveError(f"owned by other VM (owner = VM {'' if owner is None else owner})")
    if reference.key != "vmstate":
        _check_snapshots(world, guest, reference, config, volume)
    if world.volumes.clones_of(volid, node) and config["type"] != "lvmthin":
        raise PveError("referenced by linked clone(s)")
    return LocalVolume(volid=volid, target_storage=goal, where=reference.where)


def _check_snapshots(
    world: World, guest: Document, reference: Reference, config: Document, volume: Document
) -> None:
    if not reference.snapshots or reference.where == "generated":
        return
    if guest["status"] == "running":
        raise PveError("online storage migration not possible if non-replicated snapshot exists")
    if config["type"] != "zfspool" and volume.get("format") != "qcow2":
        raise PveError("non-migratable snapshot exists")


def check_copies(world: World, volumes: Mapping[str, LocalVolume]) -> None:
    """Refuse volumes that the storages cannot pass on to each other.

    Raises:
        PveError: The type of a storage is not supported, or a volume refers to a base that stays behind.
    """
    for volid in volumes:
        kind = str(world.storages.config(parse_volume_id(volid)[0])["type"])
        if kind not in _MIGRATABLE:
            raise PveError(f"can't migrate '{volid}' - storage type '{kind}' not supported")
        base = images.base_in_name(volid)
        if base is not None:
            raise PveError(f"can't migrate '{volid}' as it's a clone of '{base}'")


def new_format(world: World, volume: Document, target_storage: str, *, online: bool) -> str:
    """Return the format of a copy on another node.

    Raises:
        PveError: The two storages have no way to pass it on while the VM is stopped.
    """
    source = world.storages.config(str(volume["storage"]))
    target = world.storages.config(target_storage)
    present = str(volume.get("format", "raw"))
    if present in type_of(target).formats:
        return present
    if not online and present != "raw":
        raise PveError(f"cannot migrate from storage type '{source['type']}' to '{target['type']}'")
    return type_of(target).default_format
