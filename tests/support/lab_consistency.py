"""What must hold in a lab at any quiet moment, whatever clients did: `assert problems_in(world) == []`.

The rules read the documents themselves and not through the code that they judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pvelab.world.guests.guests import digest_of
from pvelab.world.world import World

__all__ = ["Gone", "problems_in"]

_VOLUME_KEY = re.compile(r"(?:ide|sata|scsi|virtio|mp|unused)\d+|efidisk0|tpmstate0|rootfs|vmstate")
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_OWNED = re.compile(r"(?:vm|base|subvol|basevol)-(\d+)-\S+")
_EXTENT = 4 * 2**20
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# A suspended VM keeps its lock while nothing works on it; the lab's own task names are no guide to it.
_RESTING_LOCKS = frozenset(("suspended",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What clients did past the owner of a thing, as Proxmox lets them.

    Attributes:
        volumes: Volumes that somebody removed from a storage although a guest has them.
        members: Guests that somebody put into a pool although they do not exist.
        locked: Guests that somebody locked by hand, or that were at work when the lab was killed.
        shared: Whether guests may have addresses or volumes of others, which root may give them.
        leftovers: Whether there may be images that no guest has.
    """

    volumes: Collection[str] = ()
    members: Collection[int] = ()
    locked: Collection[int] = ()
    shared: bool = False
    leftovers: bool = True


_NOTHING = Gone()


def problems_in(world: World, gone: Gone = _NOTHING) -> list[str]:
    """Return every rule that is broken, as text; a task that runs may break some for its while."""
    return [
        *_documents(world),
        *_accounts(world),
        *_guests(world, gone),
        *_volumes_of_guests(world, gone),
        *_snapshots(world, gone),
        *_clones(world),
        *_pools(world, gone),
        *_tasks(world),
    ]


def _documents(world: World) -> Iterator[str]:
    """Tell of what the next start would read differently."""
    for collection, documents in world.store.dump().items():
        for key, document in documents.items():
            if orjson.loads(orjson.dumps(document)) != document:
                yield f"{collection}/{key} is not what a restart would find: {document}"


def _accounts(world: World) -> Iterator[str]:
    sums: Counter[tuple[str, str]] = Counter()
    for key, volume in world.store.items("volumes").items():
        scope, _, volid = key.partition("|")
        storage = volid.partition(":")[0]
        named = (volume["scope"], volume["volid"], volume["storage"], volume["place"])
        if named != (scope, volid, storage, f"{scope}|{storage}"):
            yield f"volumes/{key} says of itself {named}"
        if storage not in world.storages.all():
            continue
        own = volume["size"] - volume.get("borrowed", 0)
        if own < 0:
            yield f"volumes/{key} counts {own} bytes"
        sums[scope, storage] += own
        if "sha256" in volume and not world.blobs.path(volume["sha256"]).exists():
            yield f"volumes/{key} has lost its bytes"
    for storage, config in world.storages.all().items():
        for node in world.cluster.nodes():
            scope = "" if world.storages.is_shared(config) else node
            used = world.storages.used(storage, node)
            if used != sums[scope, storage]:
                yield f"{storage} on {node} counts {used} bytes, its volumes {sums[scope, storage]}"


def _guests(world: World, gone: Gone) -> Iterator[str]:
    addresses: Counter[str] = Counter()
    at_work = {task["id"] for task in world.tasks.newest_first() if not task.get("status")}
    for key, guest in world.guests.all().items():
        config = guest["config"]
        if key != str(guest["vmid"]):
            yield f"guests/{key} is {guest['vmid']}"
        if guest["node"] not in world.cluster.nodes():
            yield f"guest {key} is on the node {guest['node']}, which does not exist"
        if guest["digest"] != digest_of(
            config, guest["pending"], guest["pending_delete"], guest["snapshots"]
        ):
            yield f"guest {key} has the digest of another state"
        lock = config.get("lock")
        # As on Proxmox: it is found out too late, and whoever removed the volume has to unlock the guest.
        stuck = lock == "snapshot-delete" and _has_lost_volumes(world, guest)
        known = lock in _RESTING_LOCKS or key in at_work or int(key) in gone.locked or stuck
        if lock and not known:
            yield f"guest {key} is locked ({lock}) and nothing works on it"
        for name, value in config.items():
            if re.fullmatch(r"net\d+", name):
                addresses.update(found.upper() for found in _MAC.findall(str(value)))
    same = {mac: count for mac, count in addresses.items() if count > 1}
    if not gone.shared and len(same) > _by_chance(len(addresses)):
        yield from (f"{count} guests have the address {mac}" for mac, count in same.items())


def _by_chance(addresses: int) -> int:
    """Return how many of so many addresses may be the same: as on Proxmox 24 bits of them are random."""
    return 2 + addresses**2 // 2**23 if addresses > 100 else 0


def _volumes_of_guests(world: World, gone: Gone) -> Iterator[str]:
    holders: dict[tuple[str, str], set[str]] = {}
    for vmid, guest in world.guests.all().items():
        states = [("", guest["config"]), ("pending ", guest["pending"])]
        states += [(f"snapshot {name} ", entry["config"]) for name, entry in guest["snapshots"].items()]
        for state, config in states:
            for key, volid, size in _drives(config):
                volume = world.volumes.find(volid, guest["node"]) if _is_kept(world, volid) else None
                if volume is None:
                    # Whoever was given the volume of another loses it with that one.
                    lent = gone.shared and _owner(volid) != int(vmid)
                    if _owner(volid) is not None and volid not in gone.volumes and not lent:
                        yield f"guest {vmid} has {state}{key} {volid}, which does not exist"
                    continue
                holders.setdefault((volume["scope"], volid), set()).add(vmid)
                more = volume["size"] - (size or 0)
                # A container says what was asked for; the storage rounds that up.
                fits = 0 <= more < _EXTENT if guest["type"] == "lxc" else more == 0
                if state == "" and size is not None and not fits:
                    yield f"guest {vmid} says {size} bytes of {key} {volid}, its storage {volume['size']}"
    for (scope, volid), vmids in holders.items():
        if len(vmids) > 1 and not gone.shared and _owner(volid) is not None:
            yield f"{volid} ({scope}) is in guests {sorted(vmids)}"
    yield from (
        f"{volume['volid']} ({volume['scope']}) is in no guest"
        for volume in (() if gone.leftovers else world.store.items("volumes").values())
        if _owner(volume["volid"]) is not None and (volume["scope"], volume["volid"]) not in holders
    )


def _drives(config: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None]]:
    """Yield the key, the volume and the stated size of everything in a configuration that is a volume."""
    for key, value in config.items():
        if not _VOLUME_KEY.fullmatch(key):
            continue
        first, *options = str(value).split(",")
        volid = first.removeprefix("file=").removeprefix("volume=")
        if ":" in volid and not volid.startswith("/"):
            sizes = [option[5:] for option in options if option.startswith("size=")]
            yield key, volid, _bytes(sizes[0]) if sizes else None


def _bytes(text: str) -> int:
    unit = text[-1] if text[-1] in _UNITS else ""
    return int(text.removesuffix(unit)) * _UNITS[unit]


def _owner(volid: str) -> int | None:
    found = _OWNED.fullmatch(volid.partition(":")[2].rpartition("/")[2])
    return int(found[1]) if found else None


def _is_kept(world: World, volid: str) -> bool:
    """Tell whether there is still such a storage: who removes one leaves configurations as they are."""
    return volid.partition(":")[0] in world.storages.all()


def _snapshots(world: World, gone: Gone) -> Iterator[str]:
    taken: set[tuple[str, str]] = set()
    for vmid, guest in world.guests.all().items():
        for name, entry in guest["snapshots"].items():
            lost = entry.get("snapstate") == "delete" and _has_lost_volumes(world, guest)
            if entry.get("snapstate") and int(vmid) not in gone.locked and not lost:
                yield f"snapshot {name} of guest {vmid} is unfinished"
            for key, volid, _ in _drives(entry["config"]):
                if _owner(volid) is None or volid in gone.volumes or not _is_kept(world, volid):
                    continue
                scope = world.storages.scope(volid.partition(":")[0], guest["node"])
                taken.add((f"{scope}|{volid}", name))
                known = world.store.get("volume_snapshots", f"{scope}|{volid}") or {}
                # A guest that was recovered to its replica has lost the snapshots since the last sync.
                if any(other.startswith("__replicate_") for other in known):
                    continue
                if name not in known and "cloudinit" not in volid and not entry.get("snapstate"):
                    yield f"snapshot {name} of guest {vmid} lacks that of {key} {volid}"
        parents = {entry.get("parent") for entry in (guest["config"], *guest["snapshots"].values())}
        for parent in parents - {None} - set(guest["snapshots"]):
            yield f"guest {vmid} stands on the snapshot {parent}, which does not exist"
    for place, names in world.store.items("volume_snapshots").items():
        if world.store.get("volumes", place) is None:
            yield f"volume_snapshots/{place} is of no volume"
        if not gone.leftovers:
            yield from (f"{place} has the snapshot {n} of nobody" for n in names if (place, n) not in taken)


def _has_lost_volumes(world: World, guest: Mapping[str, Any]) -> bool:
    """Tell whether a volume of one of the guest's snapshots is gone."""
    volids = [volid for entry in guest["snapshots"].values() for _, volid, _ in _drives(entry["config"])]
    return any(
        not _is_kept(world, volid) or world.volumes.find(volid, guest["node"]) is None for volid in volids
    )


def _clones(world: World) -> Iterator[str]:
    names = {(volume["place"], volume["volid"].partition(":")[2]) for volume in _all_volumes(world)}
    for volume in _all_volumes(world):
        parent = volume.get("parent")
        if parent is not None and (volume["place"], parent) not in names:
            yield f"{volume['volid']} stands on {parent}, which does not exist"


def _all_volumes(world: World) -> Collection[Mapping[str, Any]]:
    return world.store.items("volumes").values()


def _pools(world: World, gone: Gone) -> Iterator[str]:
    for key, member in world.store.items("pool_members").items():
        if world.store.get("pools", member["pool"]) is None:
            yield f"pool_members/{key} is in the pool {member['pool']}, which does not exist"
        vmid = member.get("vmid")
        if vmid is not None and vmid not in gone.members and world.guests.get(vmid) is None:
            yield f"pool {member['pool']} has the guest {vmid}, which does not exist"


def _tasks(world: World) -> Iterator[str]:
    for upid, task in world.store.items("tasks").items():
        if not task.get("status") and not world.tasks.is_running(upid):
            yield f"{upid} neither runs nor has ended"
        if "internal error of the lab" in f"{task.get('status')}{task['log'][-1:]}":
            yield f"{upid} ended with {task['status']}"
