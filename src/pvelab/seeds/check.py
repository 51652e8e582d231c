"""From an object to a seed: every mistake found at once, nothing guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pvelab.seeds.model import EMPTY, Seed, SeedCall, SeedFile, SeedGuest, SeedMachine, SeedUser, SeedVolume
from pvelab.world.storage.physical import Disk
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError, Location

__all__ = ["SeedError", "is_node_name", "parse_seed"]

T = TypeVar("T")

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_TOKEN = re.compile(r"[A-Za-z0-9-]+")
_CLUSTER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,14})")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_METHODS = ("POST", "PUT", "DELETE")
_FIELDS = frozenset(
    (
        *("nodes", "cluster", "password", "token", "authorized_keys", "system_users"),
        *("storages", "capacities", "volumes", "guests", "files", "calls", "ha_groups"),
    )
)
_MACHINE = frozenset(("name", "ip", "cpus", "memory", "rootfs", "interfaces", "disks"))
_DISK_PATH = re.compile(r"/dev/[a-z][a-z0-9]{0,31}")
_DISK_TYPES = ("ssd", "hdd", "nvme", "usb")
_FACTS = frozenset(
    ("content", "format", "vmid", "ctime", "notes", "protected", "parent", "borrowed", "virtual_size")
)
_VMIDS = range(100, 1_000_000_000)

BAD_SEED = Kind(
    code="E-LAB-SEED-FIELD",
    summary="A seed has a wrong field",
    remedy="Write the seed as docs/reference/lab-control.md describes it.",
)


class SeedError(InvalidInputError):
    """A seed does not exist, cannot be read, or one of its calls was refused; the lab holds nothing of it."""

    code = "E-LAB-SEED"
    summary = "The seed cannot be used"
    default_remedy = "Correct the seed; `stackyard lab up --seed empty` starts without one."


def is_node_name(name: str) -> bool:
    """Return whether a node can have this name."""
    return _NODE.fullmatch(name) is not None


def parse_seed(document: Any, *, name: str = "given", where: Location | None = None) -> Seed:
    """Return the seed that an object describes.

    Raises:
        SeedError: The object is wrong; all of what is wrong is listed.
    """
    if not isinstance(document, Mapping):
        raise SeedError(f"The seed '{name}' is not an object.", where=where)
    reading = _ObjectReader(document, where)
    for key in sorted(map(str, set(document) - _FIELDS)):
        reading.refuse(f"There is no field '{key}'.")
    names, machines = reading.machines()
    seed = Seed(
        name=name,
        cluster=reading.text("cluster", _CLUSTER) or EMPTY.cluster,
        nodes=names,
        machines=machines,
        password=reading.text("password"),
        token=reading.text("token", _TOKEN),
        authorized_keys=tuple(map(str, reading.list("authorized_keys"))),
        system_users=reading.all("system_users", _user),
        storages=reading.storages(),
        capacities=reading.all("capacities", _capacity),
        volumes=reading.all("volumes", _volume),
        guests=reading.all("guests", _guest),
        files=reading.all("files", _file),
        calls=reading.all("calls", _call),
        ha_groups=reading.flag("ha_groups"),
    )
    reading.check_places(seed)
    if reading.found.errors:
        count = len(reading.found.errors)
        raise SeedError(f"The seed '{name}' has {count} wrong fields.", reading.found.errors, where=where)
    return seed


class _SeedValueError(Exception):
    pass


class _ObjectReader:
    """One object being read, and what was found wrong with it."""

    def __init__(self, document: Mapping[str, Any], where: Location | None) -> None:
        self.found = Diagnostics()
        self._document = document
        self._where = where

    def refuse(self, text: str) -> None:
        self.found.add(BAD_SEED, text, self._where)

    def text(self, key: str, pattern: re.Pattern[str] | None = None) -> str | None:
        value = self._document.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value:
            self.refuse(f"'{key}' must be text.")
            return None
        if pattern is not None and not pattern.fullmatch(value):
            self.refuse(f"'{key}' may have letters, digits and dashes only: clients refuse others.")
        return value

    def flag(self, key: str) -> bool:
        value = self._document.get(key, False)
        if not isinstance(value, bool):
            self.refuse(f"'{key}' must be true or false.")
        return bool(value)

    def list(self, key: str) -> list[Any]:
        value = self._document.get(key, [])
        if not isinstance(value, list):
            self.refuse(f"'{key}' must be a list.")
            return []
        return value

    def all(self, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
        entries = []
        for entry in self.list(key):
            try:
                entries.append(read(entry))
            except _SeedValueError as wrong:
                self.refuse(str(wrong))
        return tuple(entries)

    def machines(self) -> tuple[tuple[str, ...], dict[str, SeedMachine]]:
        names, machines = [], {}
        for entry in self.list("nodes"):
            fields = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
            name = str(fields.get("name"))
            names.append(name)
            if not is_node_name(name):
                self.refuse(f"'{name}' in 'nodes' is no name for a node.")
            given = {key: value for key, value in fields.items() if key != "name"}
            if not set(fields) <= _MACHINE or not _fits_machine(given):
                self.refuse(
                    f"'{name}' in 'nodes' has a 'name', and 'ip', 'cpus', 'memory' and 'rootfs' in bytes,"
                    " 'interfaces' as text, and 'disks', each with a 'path' such as /dev/sda, a 'size' in"
                    f" bytes and perhaps a 'type' ({', '.join(_DISK_TYPES)}), 'model', 'vendor', 'serial'."
                )
            elif given:
                if "disks" in given:
                    given["disks"] = tuple(Disk(**disk) for disk in given["disks"])
                machines[name] = SeedMachine(**given)
        if len(set(names)) != len(names):
            self.refuse("'nodes' has a name twice.")
        return tuple(names) or EMPTY.nodes, machines

    def storages(self) -> dict[str, dict[str, Any]] | None:
        value = self._document.get("storages")
        if value is None:
            return None
        if not isinstance(value, Mapping) or not all(
            isinstance(config, Mapping) and isinstance(config.get("type"), str) for config in value.values()
        ):
            self.refuse("'storages' must be an object of definitions, each with a 'type'.")
            return None
        return {str(storage): _plain(config) for storage, config in value.items()}

    def check_places(self, seed: Seed) -> None:
        """Refuse guests and volumes on nodes that the seed does not have, and numbers that occur twice."""
        known = {*seed.nodes, *(f"{{node{number}}}" for number in range(1, 10))}
        places = [("guests", str(guest.vmid), guest.node) for guest in seed.guests]
        places += [("volumes", volume.volume, volume.node) for volume in seed.volumes]
        for field, what, node in places:
            if node not in known:
                self.refuse(f"{what} in '{field}' is on '{node}', which is no node of the seed.")
        if len({guest.vmid for guest in seed.guests}) != len(seed.guests):
            self.refuse("'guests' has a vmid twice.")


def _fits_machine(fields: Mapping[str, Any]) -> bool:
    numbers = all(
        isinstance(fields[key], int) and fields[key] > 0
        for key in ("cpus", "memory", "rootfs")
        if key in fields
    )
    texts = all(isinstance(fields[key], str) for key in ("ip", "interfaces") if key in fields)
    return numbers and texts and _fit_disks(fields.get("disks", []))


def _fit_disks(disks: Any) -> bool:
    if not isinstance(disks, list) or not all(isinstance(disk, Mapping) for disk in disks):
        return False
    texts = ("path", "type", "model", "vendor", "serial")
    fit = all(
        set(disk) <= {"size", *texts}
        and all(isinstance(disk[key], str) for key in texts if key in disk)
        and _DISK_PATH.fullmatch(str(disk.get("path", "")))
        and isinstance(disk.get("size"), int)
        and disk["size"] > 0
        and disk.get("type", "ssd") in _DISK_TYPES
        for disk in disks
    )
    return fit and len({disk["path"] for disk in disks}) == len(disks)


def _user(entry: Any) -> SeedUser:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    keys = fields.get("authorized_keys", [])
    name, password = str(fields.get("name", "")), fields.get("password", "")
    fits = set(fields) <= {"name", "password", "authorized_keys"} and _USER.fullmatch(name) and name != "root"
    if not fits or not isinstance(keys, list) or not isinstance(password, str):
        raise _SeedValueError(
            "an entry of 'system_users' has a 'name' (not root), a 'password' and a list 'authorized_keys'."
        )
    return SeedUser(name=name, password=password, authorized_keys=tuple(map(str, keys)))


def _call(entry: Any) -> SeedCall:
    method, path, parameters = "POST", "", {}
    if isinstance(entry, Mapping):
        method, path = str(entry.get("method", "POST")).upper(), str(entry.get("path", ""))
        parameters = entry.get("parameters", {})
    known = isinstance(entry, Mapping) and set(entry) <= {"method", "path", "parameters"}
    if not known or method not in _METHODS or not path.startswith("/") or not isinstance(parameters, Mapping):
        text = f"{entry!r} in 'calls' is no call: it has a 'method' ({', '.join(_METHODS)}), a 'path' such as"
        raise _SeedValueError(f"{text} /pools, and 'parameters'.")
    return SeedCall(method=method, path=path, parameters=_plain(parameters))


def _file(entry: Any) -> SeedFile:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    size = fields.get("size")
    fits = (
        set(fields) <= {"volume", "node", "text", "size"}
        and ":" in str(fields.get("volume", ""))
        and isinstance(fields.get("text", ""), str)
        and (size is None or (isinstance(size, int) and size >= 0 and "text" not in fields))
    )
    if not fits:
        raise _SeedValueError(
            f"{entry!r} in 'files' is no file: it has a 'volume' such as local:iso/debian.iso, and 'text' or"
            " 'size'."
        )
    return SeedFile(**fields)


def _capacity(entry: Any) -> tuple[str, str | None, int]:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    storage, node, total = fields.get("storage"), fields.get("node"), fields.get("total")
    fits = isinstance(storage, str) and isinstance(total, int) and (node is None or isinstance(node, str))
    if not fits or not set(fields) <= {"storage", "node", "total"}:
        raise _SeedValueError(f"{entry!r} in 'capacities' has a 'storage', a 'total' in bytes, and a 'node'.")
    return str(storage), node, int(str(total))


def _volume(entry: Any) -> SeedVolume:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    volume, node, size = fields.pop("volume", ""), fields.pop("node", "{node1}"), fields.pop("size", 0)
    if ":" not in str(volume) or not isinstance(size, int) or size < 0 or not set(fields) <= _FACTS:
        raise _SeedValueError(
            f"{entry!r} in 'volumes' is no volume: it has a 'volume' such as local-lvm:vm-100-disk-0, a"
            " 'node', a 'size' in bytes, and what else is known of it."
        )
    return SeedVolume(volume=str(volume), node=str(node), size=size, facts=_plain(fields))


def _guest(entry: Any) -> SeedGuest:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    vmid, kind = fields.get("vmid"), fields.get("type", "qemu")
    config, snapshots = fields.get("config", {}), fields.get("snapshots", {})
    status = fields.get("status", "stopped")
    fits = (
        isinstance(vmid, int)
        and vmid in _VMIDS
        and kind in ("qemu", "lxc")
        and isinstance(config, Mapping)
        and isinstance(snapshots, Mapping)
        and all(isinstance(snapshot, Mapping) for snapshot in snapshots.values())
        and status in ("running", "stopped")
        and set(fields) <= {"vmid", "node", "type", "config", "snapshots", "status"}
    )
    if not fits or not isinstance(vmid, int):
        raise _SeedValueError(
            f"{vmid!r} in 'guests' is no guest: it has a 'vmid' from 100, a 'node', a 'type' (qemu or lxc), a"
            " 'status' (running or stopped), a 'config' and 'snapshots'."
        )
    return SeedGuest(
        vmid=vmid,
        node=str(fields.get("node", "{node1}")),
        type=str(kind),
        config=_plain(config),
        snapshots=_plain(snapshots),
        running=status == "running",
    )


def _plain(value: Any) -> Any:
    """Return a value as Proxmox would have it: its booleans are 0 and 1, its keys are text."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
