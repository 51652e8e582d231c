"""What lists and status calls tell of a guest, of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from pvelab.server.params.formats import parse_size
from pvelab.world.ha.config import RESOURCES, read_listed_state, sid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.world.store import Document, Store
    from pvelab.world.world import World

__all__ = [
    "GuestRows",
    "boot_disk_size",
    "cpu_count",
    "guest_name",
    "guest_row",
    "guest_status",
    "memory_bytes",
]

_MIB = 2**20
_GATHERED_EVERY_S = 10
_LISTED_EVERY_S = 1
_DEFAULT_MEMORY = 512
_DEFAULT_SHARES = 1000
_QEMU_DISKS = ("virtio", "scsi", "sata", "ide")
_KINDS = ("known", "unknown", "status")


class GuestRows:
    """The lines of all guests in lists, printed once and again only when something changed.

    The figures of a running guest are renewed every ten seconds, which is how often Proxmox gathers them.
    Whole lists are kept too, for a second: dashboards and providers ask for the same one again and again.
    """

    def __init__(self, store: Store) -> None:
        self._printed: dict[tuple[str, str], tuple[float, bytes]] = {}
        self._lists: dict[tuple[object, ...], tuple[float, list[orjson.Fragment]]] = {}
        store.watch("guests", self._forget)
        store.watch("pool_members", self._forget_member)
        store.watch("ha", self._forget_all)
        store.watch(RESOURCES, self._forget_all)

    def get(self, world: World, guest: Document, *, known: bool) -> orjson.Fragment:
        """Return the line of a guest in the list of resources, printed."""
        return orjson.Fragment(self._row(world, guest, known=known))

    def status(self, world: World, guest: Document) -> orjson.Fragment:
        """Return the line of a guest in the list of its node, printed."""
        return orjson.Fragment(self._status(world, guest))

    def all(self, world: World, online: Mapping[str, bool]) -> list[orjson.Fragment]:
        """Return the lines of all guests in the list of resources, printed as one entry of that list."""
        guests = world.guests.all().values()
        return self._list(
            world,
            ("all", *online.items()),
            lambda: [
                self._row(world, guest, known=online.get(str(guest["node"]), False)) for guest in guests
            ],
        )

    def on_node(self, world: World, node: str, kind: str) -> list[orjson.Fragment]:
        """Return the lines of all guests of a kind in the list of their node, printed as one entry of it."""
        return self._list(
            world,
            ("node", node, kind),
            lambda: [self._status(world, guest) for guest in world.guests.on_node(node, kind)],
        )

    def _list(
        self, world: World, key: tuple[object, ...], make: Callable[[], list[bytes]]
    ) -> list[orjson.Fragment]:
        now = world.clock.now()
        kept = self._lists.get(key)
        if kept is None or not 0 <= now - kept[0] < _LISTED_EVERY_S:
            rows = make()
            # A fragment is taken as it is, so that commas inside it separate entries of the list around it.
            kept = self._lists[key] = (now, [orjson.Fragment(b",".join(rows))] if rows else [])
        return kept[1]

    def _row(self, world: World, guest: Document, *, known: bool) -> bytes:
        kind = "known" if known else "unknown"
        return self._get(world, guest, kind, lambda: guest_row(world, guest, known=known))

    def _status(self, world: World, guest: Document) -> bytes:
        return self._get(world, guest, "status", lambda: guest_status(world, guest))

    def _get(self, world: World, guest: Document, kind: str, make: Callable[[], dict[str, Any]]) -> bytes:
        key = (str(guest["vmid"]), kind)
        printed = self._printed.get(key)
        now = world.clock.now()
        if printed is None or (
            guest["status"] == "running" and not 0 <= now - printed[0] < _GATHERED_EVERY_S
        ):
            printed = self._printed[key] = (now, orjson.dumps(make()))
        return printed[1]

    def _forget(self, key: str, _old: Document | None, _new: Document | None) -> None:
        self._lists.clear()
        for kind in _KINDS:
            self._printed.pop((key, kind), None)

    def _forget_all(self, _key: str, _old: Document | None, _new: Document | None) -> None:
        self._lists.clear()
        self._printed.clear()

    def _forget_member(self, key: str, _old: Document | None, _new: Document | None) -> None:
        self._forget(key.removeprefix("vm/"), None, None)


def guest_status(world: World, guest: Document) -> dict[str, Any]:
    """Return the figures of a guest as its node tells them."""
    config = guest["config"]
    running = guest["status"] == "running"
    qemu = guest["type"] == "qemu"
    memory = memory_bytes(config)
    status: dict[str, Any] = {
        "vmid": guest["vmid"],
        "status": guest["status"],
        "name": guest_name(guest),
        "cpus": cpu_count(guest),
        "maxmem": memory,
        "maxdisk": boot_disk_size(guest),
        "disk": 0,
        "uptime": _uptime(world, guest),
        "cpu": 0.01 if running else 0,
        "mem": memory // 4 if running else 0,
        "memhost": memory // 4 if running else 0,
        "netin": 0,
        "netout": 0,
        "diskread": 0,
        "diskwrite": 0,
    }
    if running:
        status["pid"] = guest["run"].get("pid", 1000 + guest["vmid"])
    if config.get("template"):
        status["template"] = 1
    for key in ("lock", "tags"):
        if config.get(key):
            status[key] = config[key]
    return status | (_qemu_extras(config) if qemu else {})


def _qemu_extras(config: Any) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if any(key.startswith("serial") for key in config):
        extras["serial"] = 1
    if config.get("balloon"):
        extras["balloon_min"] = int(config["balloon"]) * _MIB
        extras["shares"] = int(config.get("shares", _DEFAULT_SHARES))
    return extras


def guest_row(world: World, guest: Document, *, known: bool = True) -> dict[str, Any]:
    """Return the line of a guest in the list of resources; little is known of one on a node that is down."""
    config = guest["config"]
    row: dict[str, Any] = {
        "id": f"{guest['type']}/{guest['vmid']}",
        "vmid": guest["vmid"],
        "node": guest["node"],
        "type": guest["type"],
        "status": "unknown",
        "template": int(bool(config.get("template"))),
    }
    if known:
        running = guest["status"] == "running"
        memory = memory_bytes(config)
        row |= {
            "status": guest["status"],
            "name": guest_name(guest),
            "maxcpu": cpu_count(guest),
            "cpu": 0.01 if running else 0,
            "maxmem": memory,
            "mem": memory // 4 if running else 0,
            "memhost": memory // 4 if running else 0,
            "maxdisk": boot_disk_size(guest),
            "disk": 0,
            "uptime": _uptime(world, guest),
            "netin": 0,
            "netout": 0,
            "diskread": 0,
            "diskwrite": 0,
        }
    state = read_listed_state(world.store, sid_of(str(guest["type"]), guest["vmid"]))
    if state is not None:
        row["hastate"] = state
    pool = world.pools.pool_of(guest["vmid"])
    if pool is not None:
        row["pool"] = pool
    for key in ("lock", "tags"):
        if config.get(key):
            row[key] = config[key]
    return row


def guest_name(guest: Document) -> str:
    """Return what lists call a guest."""
    if guest["type"] == "lxc":
        return str(guest["config"].get("hostname") or f"CT{guest['vmid']}")
    return str(guest["config"].get("name") or f"VM {guest['vmid']}")


def memory_bytes(config: Any) -> int:
    """Return the memory of a guest; QEMU keeps it as text that may have a key."""
    text = str(config.get("memory", _DEFAULT_MEMORY)).removeprefix("current=")
    return int(text) * _MIB if text.isdecimal() else _DEFAULT_MEMORY * _MIB


def cpu_count(guest: Document) -> int:
    """Return how many CPUs a guest has."""
    config = guest["config"]
    if guest["type"] == "lxc":
        return int(config.get("cores") or float(config.get("cpulimit") or 0) or 16)
    return int(config.get("vcpus") or int(config.get("sockets", 1)) * int(config.get("cores", 1)))


def boot_disk_size(guest: Document) -> int:
    """Return the size of the disk that a guest starts from, zero without one."""
    config = guest["config"]
    if guest["type"] == "lxc":
        return _size_in(str(config.get("rootfs", "")))
    order = str(config.get("boot", "")).removeprefix("order=").split(";")
    candidates = [*order, *(f"{bus}0" for bus in _QEMU_DISKS)]
    for name in candidates:
        value = str(config.get(name, ""))
        if name.startswith(_QEMU_DISKS) and value and "media=cdrom" not in value:
            return _size_in(value)
    return 0


def _size_in(drive: str) -> int:
    for part in drive.split(","):
        if part.startswith("size="):
            return parse_size(part[5:]) or 0
    return 0


def _uptime(world: World, guest: Document) -> int:
    if guest["status"] != "running" or not guest["started"]:
        return 0
    return max(0, int(world.clock.now() - guest["started"]))
