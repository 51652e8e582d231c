"""Starting, stopping and rebooting a container, and waiting for what that leads to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.clients import proxmox
from stackyard.provider.guests.addresses import has_address
from stackyard.provider.resources.container.blocks import block

if TYPE_CHECKING:
    from stackyard.provider.guests import Guest
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["Addresses", "reboot", "shut_down", "start", "wait_for_addresses"]

Addresses = dict[str, dict[str, str]]

# How long the original waits for addresses, whatever was asked for.
_ADDRESSES_S = 10.0
_REBOOT_S = 300
_BACKOFF = Backoff(0.05, 1.0)
# A shutdown that is to be forced needs some time after its own timeout.
_FORCE_S = 5


async def start(guest: Guest, *, timeout_s: float) -> None:
    """Start the container unless it runs already."""
    await guest.run("status/start", timeout_s=timeout_s, done="already running")


async def shut_down(guest: Guest, *, timeout_s: float) -> None:
    """Shut the container down, by force when it does not obey in time."""
    params = {"forceStop": True, "timeout": max(1, int(timeout_s) - _FORCE_S)}
    await guest.run("status/shutdown", params, timeout_s=timeout_s + _FORCE_S, done="not running")


async def reboot(guest: Guest, *, timeout_s: float) -> None:
    """Reboot the container, so that what was changed comes into force."""
    await guest.run("status/reboot", {"timeout": _REBOOT_S}, timeout_s=timeout_s)


async def wait_for_addresses(work: Work, state: Object, *, patience_s: float = _ADDRESSES_S) -> Addresses:
    """Return the first address of each interface by family, once those are there that are waited for."""
    wanted = {family for family in ("ipv4", "ipv6") if block(state, "wait_for_ip").get(family)}
    deadline, pauses = time.monotonic() + patience_s, iter(_BACKOFF)
    if patience_s:
        work.session.waits.report(int(state["id"]), "an address")
    while True:
        listed, problem = await _interfaces(work, state)
        if has_address(listed, wanted) or problem or time.monotonic() >= deadline:
            if problem:
                work.warn("The addresses of a container cannot be used", problem)
            return _first_addresses(listed)
        await work.client.pause(next(pauses))


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
