"""Changing a container in place: what differs between its state and the plan, and a reboot if need be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.container import BLOCKS, ROOT_DISK
from stackyard.fields.guest import DNS
from stackyard.fields.properties import parse
from stackyard.fields.table import Effect
from stackyard.provider.resources.container.blocks import drop_unknown, guest_of, has, is_clone, is_started
from stackyard.provider.resources.container.id_maps import write_id_maps
from stackyard.provider.resources.container.power import reboot, shut_down, start
from stackyard.provider.resources.container.properties import ROOT, defaults, properties
from stackyard.provider.resources.container.read import read_made
from stackyard.provider.resources.container.root import change_root
from stackyard.provider.resources.container.sources import with_interfaces
from stackyard.provider.resources.pool import move_guest
from stackyard.provider.time_limits import time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["update"]

_NUMBERED = {"device_passthrough": "dev", "mount_point": "mp", "network_interface": "net"}


def _reboot_keys() -> Iterator[str]:
    """Return patterns of the properties that a running container takes over only when it begins again."""
    yield from ("env", "entrypoint", "hostname", "ostype")
    yield from (row.property_name for row in DNS.rows_with(Effect.REBOOT))
    for block, table in BLOCKS.items():
        if block not in _NUMBERED:
            yield from (row.property_name for row in table.rows_with(Effect.REBOOT))
        elif table.effect is Effect.REBOOT:
            yield rf"{_NUMBERED[block]}\d+"


_NEEDS_REBOOT = re.compile("|".join(_reboot_keys()))


async def update(work: Work, prior: Object, planned: Object) -> Object:
    """Change a container as planned."""
    before = drop_unknown(prior)
    state = {**drop_unknown(planned), "id": prior["id"], "vm_id": int(prior["id"])}
    timeout_s, what = float(state["timeout_update"]), f"The change of container {prior['id']}"
    async with time_limit(timeout_s, what=what, setting="timeout_update"):
        await _change(work, before, state)
    return await read_made(work, state)


async def _change(work: Work, before: Object, state: Object) -> None:
    guest, timeout_s = guest_of(work, state), float(state["timeout_update"])
    if (before.get("pool_id") or "") != (state.get("pool_id") or ""):
        await move_guest(work, state["vm_id"], state.get("pool_id") or "")
    needs_reboot = await _configure(work, before, state)
    if (before.get("idmap") or []) != (state.get("idmap") or []):
        await write_id_maps(work, state, state.get("idmap") or [])
        needs_reboot = True
    was_started = bool(before.get("started"))
    if is_started(state) and not was_started:
        await start(guest, timeout_s=timeout_s)
        needs_reboot = (before.get("idmap") or []) != (state.get("idmap") or [])
    elif was_started and not state.get("started") and not state.get("template"):
        await shut_down(guest, timeout_s=float(state["timeout_delete"]))
    if needs_reboot and is_started(state):
        await reboot(guest, timeout_s=timeout_s)


async def _configure(work: Work, before: Object, state: Object) -> bool:
    """Send what differs; tell whether that needs a reboot."""
    config: dict[str, Any] = {}
    if before.get("disk") != state.get("disk") or is_clone(state):
        config = await guest_of(work, state).find_config() or {}
    changed, unset = _differences(with_interfaces(before, config), with_interfaces(state, config))
    if before.get("disk") != state.get("disk"):
        changed |= await change_root(work, _with_disk(state), config)
    if not changed and not unset:
        return False
    await guest_of(work, state).set(changed, delete=unset)
    names = [*changed, *unset]
    return any(_NEEDS_REBOOT.fullmatch(name) for name in names) or _is_remounted(config, changed)


def _differences(before: Object, state: Object) -> tuple[dict[str, Any], list[str]]:
    old, new = properties(before), properties(state)
    if is_clone(state):
        # A block that is taken out of a clone does not bring back what its source had.
        standard = defaults()
        new |= {name: standard[name] for name in old if name not in new and name in standard}
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return changed, [name for name in old if name not in new]


def _with_disk(state: Object) -> Object:
    """Return a state in which a disk that is left out has its default options and the size that it has."""
    return state if has(state, "disk") else {**state, "disk": [{}]}


def _is_remounted(config: dict[str, Any], changed: dict[str, Any]) -> bool:
    if ROOT not in changed:
        return False
    old, new = (parse(str(one.get(ROOT, "")), ROOT_DISK.bare) for one in (config, changed))
    keys = [row.property_name for row in ROOT_DISK.rows_with(Effect.REBOOT)]
    return any(old.get(key) != new.get(key) for key in keys)
