"""Removing old backups: `/nodes/{node}/storage/{storage}/prunebackups`."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["list_prunable", "mark", "prune", "prune_group"]

_STANDARD = re.compile(r"vzdump-(lxc|openvz|qemu)-(\d+)-(\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d)\.\S+")
_PERIODS: Mapping[str, Callable[[datetime.datetime], str]] = {
    "keep-last": lambda when: str(when.timestamp()),
    "keep-hourly": lambda when: when.strftime("%H/%d/%m/%Y"),
    "keep-daily": lambda when: when.strftime("%d/%m/%Y"),
    "keep-weekly": lambda when: when.strftime("%V/%G"),
    "keep-monthly": lambda when: when.strftime("%m/%Y"),
    "keep-yearly": lambda when: when.strftime("%Y"),
}

Entry = dict[str, Any]


@route("GET /nodes/{node}/storage/{storage}/prunebackups")
def list_prunable(call: Call) -> Any:
    """List the backups with what pruning would do to each."""
    return _mark_backups(call.world, call.node, call.params)


@route("DELETE /nodes/{node}/storage/{storage}/prunebackups")
def prune(call: Call) -> Any:
    """Remove the backups that need not be kept, in a task."""
    params, world, node, storage = call.params, call.world, call.node, str(call.params["storage"])
    if "vmid" in params:
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        call.check(f"/vms/{params['vmid']}", "VM.Backup")
    else:
        call.check(f"/storage/{storage}", "Datastore.Allocate")
    _mark_backups(world, node, params)

    async def work(task: Task) -> None:
        await task.spend(Work.DELETE)
        with task.step():
            for entry in _mark_backups(world, node, params):
                if entry["mark"] == "remove":
                    task.log(f"removing backup '{entry['volid']}'")
                    world.volumes.free(entry["volid"], node)

    ident = f"{params['vmid']}@{storage}" if "vmid" in params else storage
    return call.start_task("prunebackups", ident, work)


def prune_group(
    world: World, node: str, storage: str, *, keep: Mapping[str, int], vmid: int, kind: str
) -> list[str]:
    """Return the backups of one guest that some rules do not keep."""
    rules = ",".join(f"{key}={value}" for key, value in keep.items())
    params = {"storage": storage, "prune-backups": rules, "vmid": vmid, "type": kind}
    return [str(entry["volid"]) for entry in _mark_backups(world, node, params) if entry["mark"] == "remove"]


def _mark_backups(world: World, node: str, params: Mapping[str, Any]) -> list[Entry]:
    storage = str(params["storage"])
    config = world.storages.require(storage, node)
    text = str(params.get("prune-backups") or config.get("prune-backups") or "keep-all=1")
    try:
        keep = properties.parse(PROPERTY_FORMATS["prune-backups"], text)
    except FormatError as err:
        raise PveError(str(err)) from err
    entries = []
    for volume in world.storages.volumes(storage, node):
        if volume["content"] == "backup" and params.get("vmid", volume.get("vmid")) == volume.get("vmid"):
            entry = _entry(volume)
            if params.get("type", entry["type"]) == entry["type"]:
                entries.append(entry)
    groups: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        if entry.get("mark") != "renamed":
            groups.setdefault((entry["type"], entry["vmid"]), []).append(entry)
    for group in groups.values():
        mark(group, keep)
    return entries


def _entry(volume: Mapping[str, Any]) -> Entry:
    volid = str(volume["volid"])
    if str(volume.get("format", "")).startswith("pbs-"):
        kind = "qemu" if volume["format"] == "pbs-vm" else "lxc"
        known: Entry = {"volid": volid, "type": kind, "vmid": int(volume["vmid"]), "ctime": volume["ctime"]}
        return known | ({"mark": "protected"} if volume.get("protected") else {})
    found = _STANDARD.fullmatch(volid.rpartition("/")[2])
    entry: Entry = {"volid": volid, "type": "unknown", "ctime": int(volume["ctime"])}
    if found is None:
        entry["mark"] = "renamed"
        if volume.get("vmid") is not None:
            entry["vmid"] = int(volume["vmid"])
    else:
        entry |= {"type": found[1], "vmid": int(found[2]), "ctime": _seconds(found[3], entry["ctime"])}
    if volume.get("protected"):
        entry["mark"] = "protected"
    return entry


def _seconds(stamp: str, otherwise: int) -> int:
    """Return the time in the name of a backup, or another one where the name has no time that exists."""
    try:
        when = datetime.datetime.strptime(f"{stamp}+0000", "%Y_%m_%d-%H_%M_%S%z")
    except ValueError:
        return otherwise
    return int(when.timestamp())


def mark(group: list[Entry], keep: Mapping[str, Any]) -> None:
    """Mark the backups of one guest: the rules one after the other, each on what the earlier ones left.

    Args:
        group: The backups; one that has a mark keeps it.
        keep: How many to keep by each rule.
    """
    rules = {name: int(keep[name]) for name in _PERIODS if int(keep.get(name, 0)) > 0}
    if keep.get("keep-all") or not rules:
        for entry in group:
            entry.setdefault("mark", "keep")
        return
    newest_first = sorted(group, key=lambda entry: -int(entry["ctime"]))
    for name, count in rules.items():
        _apply(newest_first, count, _PERIODS[name])
    for entry in group:
        entry.setdefault("mark", "remove")


def _apply(newest_first: list[Entry], count: int, period: Callable[[datetime.datetime], str]) -> None:
    """Keep the newest backup of each of the latest periods that no earlier rule covers."""

    def label(entry: Entry) -> str:
        return period(datetime.datetime.fromtimestamp(entry["ctime"], datetime.UTC))

    covered = {label(entry) for entry in newest_first if entry.get("mark") == "keep"}
    seen: set[str] = set()
    for entry in newest_first:
        if entry.get("mark") is not None:
            continue
        name = label(entry)
        if name in covered:
            continue
        if name not in seen:
            if len(seen) >= count:
                return
            seen.add(name)
            entry["mark"] = "keep"
        else:
            entry["mark"] = "remove"
