"""Snapshots of guests of both kinds.

They are kept in the guest: `snapshots[name]` has `config`, a copy of the configuration at that time, and
`snaptime`, `parent` (the snapshot before it), `description`, `vmstate` (the volume with the memory) and
`snapstate` while it is being made or removed. `config["parent"]` of the guest is the snapshot that it stands
on. `SnapshotRules` says what is different for VMs and containers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.world.generate import new_uuid
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = [
    "Snapshot",
    "SnapshotRules",
    "check_name",
    "delete",
    "describe",
    "flat_config",
    "is_in_use",
    "list_snapshots",
    "require",
    "roll_back",
    "take",
    "volumes_of",
]

_NOT_COPIED = frozenset(("lock", "digest", "description"))
_KEPT_BY_ROLLBACK = frozenset(("description",))

Volumes = Callable[["World", Mapping[str, Any]], Mapping[str, str]]
SaveState = Callable[["Document", str], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRules:
    """What snapshots must know of a kind of guest.

    Attributes:
        kind: `qemu` or `lxc`.
        volumes: Returns the volumes of a configuration by key: no CD drives, no bind mounts.
        stop: Makes a guest stopped, in the running transaction.
    """

    kind: str
    volumes: Volumes
    stop: Callable[[World, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The snapshot that some work is about."""

    family: SnapshotRules
    node: str
    vmid: int
    name: str


def check_name(name: str) -> None:
    """Refuse the names that mean something else.

    Raises:
        PveError: The name is reserved.
    """
    if name == "current" or name.lower() == "pending":
        shown = "current" if name == "current" else "pending"
        raise PveError(f"unable to use snapshot name '{shown}' (reserved name)")


def require(guest: Document, name: str) -> Document:
    """Return a snapshot of a guest.

    Raises:
        PveError: There is none of that name.
    """
    found: Document | None = guest["snapshots"].get(name)
    if found is None:
        raise PveError(f"snapshot '{name}' does not exist")
    return found


def list_snapshots(guest: Document) -> list[dict[str, Any]]:
    """Return all snapshots and, last, the present state, as both kinds of guests list them."""
    rows = []
    for name, snapshot in guest["snapshots"].items():
        row = {
            "name": name,
            "snaptime": snapshot.get("snaptime", 0),
            "description": snapshot.get("description", ""),
        }
        if guest["type"] == "qemu":
            row["vmstate"] = int(bool(snapshot.get("vmstate")))
        rows.append({**row, **{key: snapshot[key] for key in ("parent", "snapstate") if snapshot.get(key)}})
    current: dict[str, Any] = {
        "name": "current",
        "digest": guest["digest"],
        "running": int(guest["status"] == "running"),
        "description": "You are here!",
    }
    if guest["config"].get("parent"):
        current["parent"] = guest["config"]["parent"]
    return [*rows, current]


def flat_config(snapshot: Document) -> dict[str, Any]:
    """Return a snapshot as one section of a configuration file, which is how the API shows it."""
    own = {key: value for key, value in snapshot.items() if key != "config"}
    config = {key: value for key, value in snapshot.get("config", {}).items() if key != "parent"}
    return {**config, **own}


def describe(world: World, snapshot: Snapshot, text: str) -> None:
    """Change the description of a snapshot, in the running transaction."""
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    world.guests.check_unlocked(guest)
    found = require(guest, snapshot.name)
    world.guests.update(
        guest, snapshots={**guest["snapshots"], snapshot.name: {**found, "description": text}}
    )


def volumes_of(world: World, family: SnapshotRules, guest: Document) -> set[str]:
    """Return every volume that a guest has or is about to have, unused ones and those of snapshots not."""
    configs = (guest["config"], guest["pending"])
    return {volid for config in configs for volid in family.volumes(world, config).values()}


def is_in_use(world: World, family: SnapshotRules, guest: Document, volid: str) -> bool:
    """Return whether a snapshot of a guest still needs a volume."""
    return any(
        volid in family.volumes(world, snapshot["config"]).values()
        for snapshot in guest["snapshots"].values()
    )


async def take(
    world: World,
    task: Task,
    snapshot: Snapshot,
    *,
    description: str | None = None,
    save_state: SaveState | None = None,
) -> None:
    """Make a snapshot as the work of a task.

    Args:
        world: The lab.
        task: The task.
        snapshot: What is to be created.
        description: What the user says about it.
        save_state: Allocates the volume for the memory of a running guest and returns what else to keep.

    Raises:
        PveError: The guest or its storages cannot have it; nothing of it stays.
    """
    kind, node, vmid, name = snapshot.family.kind, snapshot.node, snapshot.vmid, snapshot.name
    async with world.locks.guest(kind, vmid):
        guest = _check_takeable(world, snapshot)
        extra = await save_state(guest, name) if save_state else {}
        with task.step():
            _prepare(world, snapshot, description, extra)

    def clean_up() -> None:
        task.log("snapshot create failed: starting cleanup")
        with task.step():
            _forget(world, snapshot)

    with undo_on_failure(clean_up):
        await task.spend(Work.SNAPSHOT)
        await world.machines.remember(vmid, name)
        with task.step():
            guest = world.guests.require(kind, node, vmid)
            for key, volid in snapshot.family.volumes(world, guest["snapshots"][name]["config"]).items():
                label = f"drive-{key}" if kind == "qemu" else key
                task.log(f"snapshotting '{label}' ({volid})")
                images.take_snapshot(world, volid, node, name)
            _commit(world, snapshot)


async def delete(world: World, task: Task, snapshot: Snapshot, *, force: bool = False) -> None:
    """Remove a snapshot as the work of a task; what only it had becomes unused.

    Args:
        world: The lab.
        task: The task.
        snapshot: What is to be removed.
        force: Remove it although one of its volumes is gone.

    Raises:
        PveError: It is not there, or the guest is locked or a template.
    """
    kind, node, vmid = snapshot.family.kind, snapshot.node, snapshot.vmid
    guest = world.guests.require(kind, node, vmid)
    _activate_storages(world, snapshot, require(guest, snapshot.name))
    async with world.locks.guest(kind, vmid):
        guest = world.guests.require(kind, node, vmid)
        world.guests.check_unlocked(guest)
        if guest["config"].get("template"):
            raise PveError("you can't delete a snapshot if vm is a template")
        found = {**require(guest, snapshot.name), "snapstate": "delete"}
        with task.step():
            world.guests.update(
                guest,
                config={**guest["config"], "lock": "snapshot-delete"},
                snapshots={**guest["snapshots"], snapshot.name: found},
            )
    await task.spend(Work.SNAPSHOT)
    async with world.locks.guest(kind, vmid):
        with task.step():
            if not force:
                _check_volumes(world, snapshot)
            _forget(world, snapshot)


async def roll_back(world: World, task: Task, snapshot: Snapshot) -> Mapping[str, Any]:
    """Make a guest what it was at a snapshot, stopped, as the work of a task; return the snapshot.

    Raises:
        PveError: It is not there or incomplete, the guest is locked or a template, a storage cannot go back.
    """
    kind, node, vmid = snapshot.family.kind, snapshot.node, snapshot.vmid
    async with world.locks.guest(kind, vmid):
        found = _check_rollback(world, snapshot)
        with task.step():
            snapshot.family.stop(world, vmid)
            guest = world.guests.require(kind, node, vmid)
            world.guests.update(guest, config={**guest["config"], "lock": "rollback"})
    await task.spend(Work.ROLLBACK)
    async with world.locks.guest(kind, vmid):
        await world.machines.go_back(vmid, snapshot.name)
        with task.step():
            for volid in snapshot.family.volumes(world, found["config"]).values():
                images.roll_back(world, volid, node, snapshot.name)
            _restore(world, snapshot, found)
    return found


def _check_takeable(world: World, snapshot: Snapshot) -> Document:
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    if guest["config"].get("template"):
        raise PveError("you can't take a snapshot if it's a template")
    world.guests.check_unlocked(guest)
    if snapshot.name in guest["snapshots"]:
        raise PveError(f"snapshot name '{snapshot.name}' already used")
    for volid in snapshot.family.volumes(world, guest["config"]).values():
        volume = None if volid.startswith("/") else world.volumes.find(volid, snapshot.node)
        if volume is None or not has_feature(world, "snapshot", volume):
            raise PveError("snapshot feature is not available")
    return guest


def _prepare(world: World, snapshot: Snapshot, description: str | None, extra: Mapping[str, Any]) -> None:
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    config = {
        key: value
        for key, value in guest["config"].items()
        if key not in _NOT_COPIED and not key.startswith("unused")
    }
    entry: dict[str, Any] = {"config": config, "snaptime": int(world.clock.now()), "snapstate": "prepare"}
    if config.get("parent"):
        entry["parent"] = config.pop("parent")
    if description:
        entry["description"] = description
    world.guests.update(
        guest,
        config={**guest["config"], "lock": "snapshot"},
        snapshots={**guest["snapshots"], snapshot.name: {**entry, **extra}},
    )


def _commit(world: World, snapshot: Snapshot) -> None:
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    done = {key: value for key, value in guest["snapshots"][snapshot.name].items() if key != "snapstate"}
    config = {key: value for key, value in guest["config"].items() if key != "lock"}
    world.guests.update(
        guest,
        config={**config, "parent": snapshot.name},
        snapshots={**guest["snapshots"], snapshot.name: done},
    )


def _activate_storages(world: World, snapshot: Snapshot, found: Mapping[str, Any]) -> None:
    """Refuse while nothing is locked yet; a volume that is gone is found out later, and the lock stays."""
    volids = list(snapshot.family.volumes(world, found["config"]).values())
    if found.get("vmstate"):
        volids.append(str(found["vmstate"]))
    for storage in sorted({parse_volume_id(volid)[0] for volid in volids if not volid.startswith("/")}):
        world.storages.config(storage)


def _check_volumes(world: World, snapshot: Snapshot) -> None:
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    found = guest["snapshots"][snapshot.name]
    for volid in snapshot.family.volumes(world, found["config"]).values():
        world.volumes.require(volid, snapshot.node)


def _forget(world: World, snapshot: Snapshot) -> None:
    """Take a snapshot out of a guest and out of its volumes, and take the lock off."""
    family, node, name = snapshot.family, snapshot.node, snapshot.name
    guest = world.guests.require(family.kind, node, snapshot.vmid)
    left = dict(guest["snapshots"])
    found = left.pop(name)
    if found.get("vmstate"):
        world.volumes.free(found["vmstate"], node)
    volumes = list(family.volumes(world, found["config"]).values())
    for volid in volumes:
        images.drop_snapshot(world, volid, node, name)
    world.store.after_commit(lambda: world.machines.forget(snapshot.vmid, name))
    for other, snapshotted in left.items():
        left[other] = _unlink(snapshotted, name, found.get("parent"))
    config = _unlink(guest["config"], name, found.get("parent"))
    config.pop("lock", None)
    changed = world.guests.update(guest, config=config, snapshots=left)
    _keep_unused(world, family, changed, volumes)


def _unlink(entry: Mapping[str, Any], name: str, parent: str | None) -> dict[str, Any]:
    """Let what stood on a snapshot depend on the one before it."""
    if entry.get("parent") != name:
        return dict(entry)
    rest = {key: value for key, value in entry.items() if key != "parent"}
    return {**rest, "parent": parent} if parent else rest


def _keep_unused(world: World, family: SnapshotRules, guest: Document, volumes: list[str]) -> None:
    """List as unused what nothing else of the guest refers to."""
    used = volumes_of(world, family, guest)
    config = {
        key: value
        for key, value in guest["config"].items()
        if not (key.startswith("unused") and value in used)
    }
    listed = {value for key, value in config.items() if key.startswith("unused")}
    for volid in volumes:
        if volid not in used and volid not in listed and world.volumes.find(volid, str(guest["node"])):
            free = next(f"unused{n}" for n in range(256) if f"unused{n}" not in config)
            config[free] = volid
            listed.add(volid)
    world.guests.update(guest, config=config)


def _check_rollback(world: World, snapshot: Snapshot) -> Document:
    guest = world.guests.require(snapshot.family.kind, snapshot.node, snapshot.vmid)
    if guest["config"].get("template"):
        raise PveError("you can't rollback if vm is a template")
    found = require(guest, snapshot.name)
    _activate_storages(world, snapshot, found)
    for volid in snapshot.family.volumes(world, found["config"]).values():
        images.require_rollback(world, volid, snapshot.node, snapshot.name)
    if found.get("snapstate"):
        raise PveError(f"unable to rollback to incomplete snapshot (snapstate = {found['snapstate']})")
    world.guests.check_unlocked(guest)
    return found


def _restore(world: World, snapshot: Snapshot, found: Mapping[str, Any]) -> None:
    family = snapshot.family
    guest = world.guests.require(family.kind, snapshot.node, snapshot.vmid)
    before = list(family.volumes(world, guest["config"]).values())
    kept = {
        key: value
        for key, value in guest["config"].items()
        if key in _KEPT_BY_ROLLBACK or key.startswith("unused")
    }
    config = {**kept, **found["config"], "parent": snapshot.name}
    if config.get("vmgenid"):
        config["vmgenid"] = new_uuid()
    restored = world.guests.update(guest, config=config, pending={}, pending_delete={})
    attached = set(family.volumes(world, config).values())
    _keep_unused(world, family, restored, [volid for volid in before if volid not in attached])
