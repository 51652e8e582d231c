"""Creating a container: from a template or as a clone, finished to the last setting, and started."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.fields.properties import parse
from stackyard.provider.resources.container.blocks import block, drop_unknown, has, is_clone, is_started
from stackyard.provider.resources.container.creation import make, making_timeout_s, source_config
from stackyard.provider.resources.container.describe import id_maps
from stackyard.provider.resources.container.id_maps import write_id_maps
from stackyard.provider.resources.container.power import reboot, start
from stackyard.provider.resources.container.properties import properties
from stackyard.provider.resources.container.read import read_made
from stackyard.provider.resources.container.root import change_root
from stackyard.provider.resources.container.sources import with_interfaces
from stackyard.provider.time_limits import time_limit

if TYPE_CHECKING:
    from stackyard.provider.guests import CreatedGuest, Guest
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["create"]


async def create(work: Work, planned: Object) -> Object:
    """Make a container, or finish one that an earlier run began."""
    setting = "timeout_clone" if is_clone(planned) else "timeout_create"
    with contextlib.ExitStack() as leaving:
        what = f"The creation of container {_name_of(planned)}".rstrip()
        async with time_limit(making_timeout_s(planned), what=what, setting=setting) as restart:
            # Others that are cloned before it do not take its time.
            made = await make(work, planned, on_turn=restart)
            leaving.callback(work.session.journal.leave, made.entry)
            state = await _finish(work, planned, made)
        return await _read_back(work, state)


def _name_of(planned: Object) -> str:
    known = drop_unknown(planned)
    return str(block(known, "initialization").get("hostname") or known.get("vm_id") or "")


async def _finish(work: Work, planned: Object, made: CreatedGuest) -> Object:
    """Do everything after the first call; all of it can be done again."""
    guest, timeout_s = made.guest, making_timeout_s(planned)
    state = {**drop_unknown(planned), "id": str(guest.vm_id), "vm_id": guest.vm_id}
    await _wait_until_made(state, made, timeout_s=timeout_s)
    work.keep(state)
    found = await _configure(guest, state, is_whole=not made.is_taken_over and not is_clone(planned))
    if has(state, "idmap") or id_maps(found):
        await write_id_maps(work, state, state.get("idmap") or [])
    if is_started(state):
        await start(guest, timeout_s=timeout_s)
        if has(state, "idmap"):
            # The first start does not look at them.
            await reboot(guest, timeout_s=timeout_s)
    return state


async def _wait_until_made(state: Object, made: CreatedGuest, *, timeout_s: float) -> None:
    guest, entry = made.guest, made.entry
    if not entry.upid:
        return
    try:
        await guest.wait(entry.upid, timeout_s=timeout_s)
    except proxmox.TaskFailedError:
        if await guest.find_config() is None:
            # Proxmox has removed what it had begun.
            await guest.work.session.journal.close(entry)
        else:
            guest.work.keep(state)
        raise
    except StackyardError:
        guest.work.keep(state)
        raise


async def _configure(guest: Guest, state: Object, *, is_whole: bool) -> dict[str, Any]:
    """Set what the first call did not, and take away the mark that it left; return what was there before."""
    config: dict[str, Any] = {}
    wanted: dict[str, Any] = {"description": state.get("description") or None}
    unset: list[str] = []
    if not is_whole:
        config = await guest.find_config() or {}
        wanted = properties(with_interfaces(state, config))
        unset = _surplus(state, config, wanted)
        wanted = {name: value for name, value in wanted.items() if not _is_mounted(name, value, config)}
    if is_clone(state):
        wanted |= await change_root(guest.work, state, config)
        wanted["template"] = True if state.get("template") else None
        wanted.setdefault("description", (await source_config(guest.work, state)).get("description"))
    if not wanted.get("description"):
        unset.append("description")
    await guest.set(wanted, delete=unset)
    return config


def _is_mounted(name: str, value: Any, config: dict[str, Any]) -> bool:
    """Tell whether a mount point is there already; naming its storage again would make another volume."""
    if not name.startswith("mp") or name not in config:
        return False
    there, wanted = parse(str(config[name]), "volume"), parse(str(value), "volume")
    return there.get("mp") == wanted.get("mp")


def _surplus(state: Object, config: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return what a container has from its source although the configuration says that it has none."""
    initialization = block(state, "initialization")
    says = {
        "startup|env": True,
        "cpulimit": has(state, "cpu"),
        "features": has(state, "features"),
        r"net\d+": has(state, "network_interface"),
        r"mp\d+": has(state, "mount_point"),
        r"dev\d+": has(state, "device_passthrough"),
        "nameserver|searchdomain": has(initialization, "dns"),
        "entrypoint": bool(initialization),
    }
    said = re.compile("|".join(pattern for pattern, is_said in says.items() if is_said))
    return [name for name in config if said.fullmatch(name) and name not in wanted]


async def _read_back(work: Work, state: Object) -> Object:
    try:
        return await read_made(work, state)
    except proxmox.RefusedError as err:
        # Everything is done; the next refresh fills in what Proxmox chose.
        work.warn("The new container could not be read", str(err.detail))
        return {**state, "ipv4": {}, "ipv6": {}}
