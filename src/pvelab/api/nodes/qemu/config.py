"""The configuration of a VM: `/nodes/{node}/qemu/{vmid}/{config,pending}`."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, options
from pvelab.api.nodes.qemu.cpu import check_cpu
from pvelab.api.nodes.qemu.disks import DiskMaker
from pvelab.api.nodes.qemu.pending import Changes, effective
from pvelab.api.nodes.qemu.settings import normalize
from pvelab.faults.latency import Work
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter, bad_parameters
from pvelab.server.routing import route
from pvelab.world.guests import snapshots
from pvelab.world.guests.guests import MISMATCH
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage.allocation import Inline, Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["read_config", "read_pending", "unlink_disks", "update_async", "update_sync"]

_MASKED = "**********"
_NOT_CONFIG = frozenset(
    (
        *("node", "vmid", "digest", "background_delay", "skip_cloud_init", "import-working-storage"),
        *("skiplock", "delete", "revert", "force"),
    )
)
# What no call can set, but a call can remove.
_INTERNAL = frozenset(("vmstate", "runningmachine", "runningcpu"))
_KNOWN_AT = "PUT /nodes/{node}/qemu/{vmid}/config"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    """What one call wants to change."""

    values: Mapping[str, Any]
    delete: tuple[str, ...]
    revert: tuple[str, ...]
    force: bool
    digest: str | None
    skiplock: bool


@route("GET /nodes/{node}/qemu/{vmid}/config")
def read_config(call: Call) -> Any:
    """Answer the configuration, pending changes applied unless `current` asks for the present one."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if "snapshot" in call.params:
        if call.params.get("current"):
            text = "cannot use 'snapshot' parameter with 'current'"
            raise bad_parameters({"snapshot": text, "current": text})
        config = snapshots.flat_config(snapshots.require(guest, call.params["snapshot"]))
    else:
        config = dict(guest["config"]) if call.params.get("current") else effective(guest)
    if "cipassword" in config:
        config["cipassword"] = _MASKED
    config["digest"] = guest["digest"]
    return config


@route("GET /nodes/{node}/qemu/{vmid}/pending")
def read_pending(call: Call) -> Any:
    """List every option with its present and its pending value."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    config, pending, deleted = guest["config"], guest["pending"], guest["pending_delete"]
    rows = []
    for key in sorted({*config, *pending}):
        row: dict[str, Any] = {"key": key}
        if key in config:
            row["value"] = _MASKED if key == "cipassword" else config[key]
        if key in pending:
            row["pending"] = pending[key]
        if key in deleted:
            row["delete"] = 2 if deleted[key] else 1
        rows.append(row)
    return rows


@route("PUT /nodes/{node}/qemu/{vmid}/config")
async def update_sync(call: Call) -> Any:
    """Change options and answer when it is done."""
    await _perform(call.world, Inline(call.world), call.node, call.vmid, _read_update(call, call.params))


@route("PUT /nodes/{node}/qemu/{vmid}/unlink")
async def unlink_disks(call: Call) -> Any:
    """Detach disks, and remove those that are unused or are to be removed by force."""
    params = {"delete": call.params["idlist"], "force": call.params.get("force", 0)}
    await _perform(call.world, Inline(call.world), call.node, call.vmid, _read_update(call, params))


@route("POST /nodes/{node}/qemu/{vmid}/config")
async def update_async(call: Call) -> Any:
    """Change options in a task; answer nothing if it is done within `background_delay`."""
    update = _read_update(call, call.params)
    world, node, vmid = call.world, call.node, call.vmid

    async def work(task: Task) -> None:
        task.log(f"update VM {vmid}: {_format_command_line(call.params)}")
        await task.spend(Work.CONFIG)
        await _perform(world, task, node, vmid, update)

    upid = call.start_task("qmconfig", vmid, work)
    delay_s = call.params.get("background_delay")
    if not delay_s or not await _ended(world, upid, delay_s):
        return upid
    status = str((world.tasks.get(upid) or {}).get("status"))
    if status != "OK" and not status.startswith("WARNINGS"):
        raise PveError(f"failed to update VM {vmid}: {status}")
    return None


async def _ended(world: World, upid: str, seconds: float) -> bool:
    """Wait for a task, but no longer than some lab time; return whether it has ended."""
    waits = {asyncio.ensure_future(world.tasks.wait(upid)), asyncio.ensure_future(world.clock.sleep(seconds))}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return not world.tasks.is_running(upid)


def _format_command_line(params: Mapping[str, Any]) -> str:
    """Return parameters as the command line has them, without the secret one."""
    shown = {key: "<hidden>" if key == "cipassword" else value for key, value in sorted(params.items())}
    return " ".join(
        f"-{key} {value}" for key, value in shown.items() if key not in ("node", "vmid", "digest")
    )


def _read_update(call: Call, params: Mapping[str, Any]) -> _Update:
    values = {key: value for key, value in params.items() if key not in _NOT_CONFIG}
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    drives.check_parameters(call.world.facts, values)
    update = _Update(
        values=normalize(call.world, values, ostype=str(guest["config"].get("ostype", ""))),
        delete=_names_to_delete(params, values),
        revert=tuple(split_list(params.get("revert", ""))),
        force=bool(params.get("force")),
        digest=params.get("digest"),
        skiplock=bool(params.get("skiplock")),
    )
    if update.skiplock and not call.is_root:
        raise bad_parameter("skiplock", "Only root may use this option.")
    if not values and not update.delete and not update.revert:
        raise PveError("no options specified")
    check_cpu(call.world, values)
    _check_names(call, update)
    options.check_options(call, update.delete)
    options.check_options(call, values)
    options.check_storage_access(call, update.values)
    options.check_bridges(call, update.values)
    _check_guest(call.world, call.node, call.vmid, update)
    return update


def _names_to_delete(params: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[str, ...]:
    listed = ["ide2" if name == "cdrom" else name for name in split_list(params.get("delete", ""))]
    # Proxmox writes an empty value to the file and does not find it again when it reads it.
    blank = [name for name, value in values.items() if value == ""]
    return tuple(dict.fromkeys((*listed, *blank)))


def _check_names(call: Call, update: _Update) -> None:
    known = call.world.facts[_KNOWN_AT].parameters
    for word, names in (("revert", update.revert), ("delete", update.delete)):
        for name in names:
            if name in update.values:
                text = f"you can't use '-{name}' and -{word} {name}' at the same time"
                raise bad_parameter("delete", text)
            plain = re.sub(r"\d+$", "[n]", name)
            if name not in _INTERNAL and (name in _NOT_CONFIG or name not in known) and plain not in known:
                raise bad_parameter(word, f"unknown option '{name}'")
    for name in set(update.delete) & set(update.revert):
        text = f"you can't use '-delete {name}' and -revert {name}' at the same time"
        raise bad_parameter("revert", text)


def _check_guest(world: World, node: str, vmid: int, update: _Update) -> Document:
    guest = world.guests.require("qemu", node, vmid)
    world.guests.check_digest(guest, update.digest, MISMATCH)
    # Throwing the saved memory away is how a suspended VM is unlocked.
    wakes = "vmstate" in update.delete and guest["config"].get("lock") == "suspended"
    if not update.skiplock and not wakes:
        world.guests.check_unlocked(guest)
    _check_balloon(guest, update.values)
    _check_boot_order(guest, update)
    return guest


def _check_balloon(guest: Document, values: Mapping[str, Any]) -> None:
    if "memory" in values or "balloon" in values:
        now = effective(guest)
        memory = str(values.get("memory", now.get("memory", "512"))).removeprefix("current=")
        balloon = int(values.get("balloon", now.get("balloon", 0)) or 0)
        if memory.isdecimal() and balloon > int(memory):
            raise PveError("balloon value too large (must be smaller than assigned memory)")


def _check_boot_order(guest: Document, update: _Update) -> None:
    boot = str(update.values.get("boot", ""))
    present = {**effective(guest), **update.values}
    for device in split_list(boot.removeprefix("order=")) if boot.startswith("order=") else ():
        if device not in present or device in update.delete:
            raise PveError(f"invalid bootorder: device '{device}' does not exist'")


async def _perform(world: World, worker: Worker, node: str, vmid: int, update: _Update) -> None:
    async with world.locks.guest("qemu", vmid):
        guest = _check_guest(world, node, vmid, update)
        maker = DiskMaker(world=world, worker=worker, node=node, vmid=vmid, config=effective(guest))
        made = await maker.create(
            {key: value for key, value in update.values.items() if drives.is_drive(key)}
        )
        with undo_on_failure(maker.undo), worker.step():
            # Allocating may have taken time; the file lock kept everyone else away from the guest.
            changes = Changes(world, world.guests.require("qemu", node, vmid))
            changes.revert(update.revert)
            changes.delete(update.delete, force=update.force)
            changes.set({**update.values, **made})
            changes.apply()
        if changes.errors:
            raise bad_parameters(changes.errors)
