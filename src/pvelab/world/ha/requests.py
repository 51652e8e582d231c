"""What becomes of a call that starts, stops or moves a guest which HA manages: HA is asked to do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.ha import config

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["ask_to_migrate", "ask_to_start", "ask_to_stop", "check_state", "is_managed_by_ha", "set_state"]

_NAMES = {"qemu": "VM", "lxc": "CT"}


def is_managed_by_ha(call: Call, kind: str) -> bool:
    """Return whether HA manages the guest of a call."""
    return config.is_managed(call.store, config.sid_of(kind, call.vmid))


def check_state(world: World, sid: str, wanted: str | None = None) -> None:
    """Refuse to ask something of a resource in error, other than to be disabled.

    Raises:
        PveError: It is in error.
    """
    in_error = config.service_state(world.store, sid) == "error"
    if config.is_managed(world.store, sid) and in_error and wanted != "disabled":
        raise PveError(f"service '{sid}' in error state, must be disabled and fixed first")


def set_state(world: World, sid: str, state: str) -> None:
    """Ask for a state of a resource, in the running transaction.

    Raises:
        PveError: It is in error, or no resource.
    """
    check_state(world, sid, state)
    if not config.is_configured(world.store, sid):
        raise PveError(f"no such resource '{sid}'")
    with world.store.edit(config.RESOURCES, sid) as resource:
        resource["state"] = state


def ask_to_start(call: Call, kind: str) -> str:
    """Ask HA to start a guest, in a task that ends at once."""
    world, vmid, sid = call.world, call.vmid, config.sid_of(kind, call.vmid)

    async def work(task: Task) -> None:
        task.log(f"Requesting HA start for {_NAMES[kind]} {vmid}")
        try:
            with task.step():
                set_state(world, sid, "started")
        except PveError as err:
            task.log(err.text)
            raise PveError(f"command 'ha-manager set {sid} --state started' failed: exit code 255") from err

    return call.start_task("hastart", vmid, work)


def ask_to_stop(call: Call, kind: str, timeout_s: int) -> str:
    """Ask HA to stop a guest, by force when the time is over."""
    sid = config.sid_of(kind, call.vmid)
    return _start_request(
        call, "hastop", f"Requesting HA stop for {_NAMES[kind]} {call.vmid}", f"stop {sid} {timeout_s}"
    )


def ask_to_migrate(call: Call, kind: str, target: str) -> str:
    """Ask HA to take a guest to another node."""
    sid = config.sid_of(kind, call.vmid)
    text = f"Requesting HA migration for {_NAMES[kind]} {call.vmid} to node {target}"
    return _start_request(call, "hamigrate", text, f"migrate {sid} {target}")


def _start_request(call: Call, kind: str, text: str, order: str) -> str:
    world = call.world

    async def work(task: Task) -> None:
        task.log(text)
        with task.step():
            config.order(world.store, order)

    return call.start_task(kind, call.vmid, work)
