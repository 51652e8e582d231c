"""Starting, stopping and rebooting a container, and waiting for what that leads to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.addresses import is_usable
from stackyard.provider.resources.container.blocks import block, path_of
from stackyard.provider.resources.container.tasks import wait_for_others, wait_for_task

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["Addresses", "is_running", "reboot", "shut_down", "start", "wait_for_addresses"]

Addresses = dict[str, dict[str, str]]

# How long the original waits for addresses, whatever was asked for.
_ADDRESSES_S = 10.0
_REBOOT_S = 300
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
# A shutdown that is to be forced needs some time after its own timeout.
_FORCE_S = 5


async def is_running(work: Work, state: Object) -> bool:
    """Tell whether the container runs."""
    status: dict[str, Any] = await work.client.get(f"{path_of(state)}/status/current")
    return bool(status.get("status") == "running")


async def start(work: Work, state: Object, *, timeout_s: float) -> None:
    """Start the container unless it runs already."""
    try:
        upid = await work.client.post(f"{path_of(state)}/status/start")
    except proxmox.AnswerLostError:
        await _settle(work, state, running=True, timeout_s=timeout_s)
        return
    except proxmox.RefusedError as err:
        if "already running" not in err.text:
            raise
        return
    await wait_for_task(work, upid, timeout_s=timeout_s)


async def shut_down(work: Work, state: Object, *, timeout_s: float) -> None:
    """Shut the container down, by force when it does not obey in time."""
    grace_s = max(1, int(timeout_s) - _FORCE_S)
    try:
        upid = await work.client.post(
            f"{path_of(state)}/status/shutdown", {"forceStop": True, "timeout": grace_s}
        )
    except proxmox.AnswerLostError:
        await _settle(work, state, running=False, timeout_s=timeout_s)
        return
    except proxmox.RefusedError as err:
        if "not running" not in err.text:
            raise
        return
    await wait_for_task(work, upid, timeout_s=timeout_s + _FORCE_S)


async def reboot(work: Work, state: Object, *, timeout_s: float) -> None:
    """Reboot the container, so that what was changed comes into force."""
    try:
        upid = await work.client.post(f"{path_of(state)}/status/reboot", {"timeout": _REBOOT_S})
    except proxmox.AnswerLostError:
        # Rebooted or not: once more does no more than once.
        upid = await work.client.post(f"{path_of(state)}/status/reboot", {"timeout": _REBOOT_S})
    await wait_for_task(work, upid, timeout_s=timeout_s)


async def _settle(work: Work, state: Object, *, running: bool, timeout_s: float) -> None:
    """Bring the container to a power state after a lost answer: see whether it gets there, else ask again."""
    await wait_for_others(work, str(state["node_name"]), int(state["id"]), timeout_s=timeout_s)
    if await is_running(work, state) is not running:
        upid = await work.client.post(f"{path_of(state)}/status/{'start' if running else 'stop'}")
        await wait_for_task(work, upid, timeout_s=timeout_s)


async def wait_for_addresses(work: Work, state: Object, *, patience_s: float = _ADDRESSES_S) -> Addresses:
    """Return the first address of each interface by family, once those are there that are waited for."""
    wanted = {family for family in ("ipv4", "ipv6") if block(state, "wait_for_ip").get(family)}
    deadline, pause = time.monotonic() + patience_s, _FIRST_PAUSE_S
    while True:
        listed, problem = await _interfaces(work, state)
        there = {f"ipv{address.version}" for one in listed for address in one.addresses if is_usable(address)}
        if (wanted <= there if wanted else there) or problem or time.monotonic() >= deadline:
            if problem:
                work.warn("The addresses of a container cannot be used", problem)
            return _first_addresses(listed)
        await work.client.pause(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


async def _interfaces(work: Work, state: Object) -> tuple[list[proxmox.GuestInterface], str]:
    """Return the interfaces of the container, and what is wrong with its report."""
    try:
        node, vm_id = str(state["node_name"]), int(state["id"])
        found = await proxmox.read_container_interfaces(work.client, node, vm_id)
    except proxmox.RefusedError:
        # A container that has just begun or ended has none to tell of.
        return [], ""
    except proxmox.GuestReportError as err:
        return [], f"The report of container {state['id']} cannot be used: {err}"
    return [one for one in found if one.name != "lo"], ""


def _first_addresses(listed: list[proxmox.GuestInterface]) -> Addresses:
    return {
        family: {one.name: found[0] for one in reversed(listed) if (found := one.of_version(version))}
        for family, version in (("ipv4", 4), ("ipv6", 6))
    }
