"""Starting, stopping and rebooting a container, and waiting for what that leads to."""

from __future__ import annotations

import ipaddress
import time
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
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
_FAMILIES = {"inet": "ipv4", "inet6": "ipv6"}


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
    wanted = [family for family in ("ipv4", "ipv6") if block(state, "wait_for_ip").get(family)]
    deadline, pause = time.monotonic() + patience_s, _FIRST_PAUSE_S
    while True:
        listed = await _interfaces(work, state)
        there = {family for family in ("ipv4", "ipv6") if _reachable(listed, family)}
        if (set(wanted) <= there if wanted else there) or time.monotonic() >= deadline:
            return _first_addresses(listed)
        await work.client.pause(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


async def _interfaces(work: Work, state: Object) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] | None = await work.client.get(f"{path_of(state)}/interfaces")
    except proxmox.RefusedError:
        # A container that has just begun or ended has none to tell of.
        return []
    return [one for one in found or () if one.get("name") != "lo"]


def _reachable(listed: list[dict[str, Any]], family: str) -> bool:
    found = (one for interface in listed for one in interface.get("ip-addresses") or ())
    return any(
        _FAMILIES.get(str(one.get("ip-address-type"))) == family and _is_reachable(str(one.get("ip-address")))
        for one in found
    )


def _is_reachable(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (
        address.is_link_local or address.is_loopback or address.is_multicast or address.is_unspecified
    )


def _first_addresses(listed: list[dict[str, Any]]) -> Addresses:
    found: Addresses = {"ipv4": {}, "ipv6": {}}
    for interface in listed:
        for one in interface.get("ip-addresses") or ():
            family = _FAMILIES.get(str(one.get("ip-address-type")))
            if family is not None:
                found[family].setdefault(str(interface["name"]), str(one["ip-address"]))
    return found
