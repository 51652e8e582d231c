"""Starting, stopping and restarting a VM, and waiting for its agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.base.errors import InterruptedRunError
from stackyard.clients import proxmox
from stackyard.fields.properties import flag, parse
from stackyard.provider.durations import duration_s
from stackyard.provider.guests.addresses import has_address
from stackyard.provider.guests.guest import seconds
from stackyard.provider.resources.vm.network import NO_ADDRESSES, read_addresses
from stackyard.provider.time_limits import time_limit
from stackyard.provider.values import known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.guests.guest import Guest
    from stackyard.provider.values import Object

__all__ = [
    "addresses",
    "has_agent",
    "make_template",
    "restart",
    "shut_down_within",
    "start",
    "start_within",
    "stop",
    "stop_within",
]

# Each pause is about an eighth of the wait so far: that much later than it happened something is noticed.
_BACKOFF = Backoff(0.1, 2.0, growth=1.15)


def has_agent(config: Mapping[str, Any]) -> bool:
    """Tell whether the guest agent of a VM is enabled."""
    return flag(parse(config.get("agent", "0"), "enabled").get("enabled"))


async def start(guest: Guest, state: Object) -> None:
    """Start a VM and wait until it runs."""
    await start_within(guest, seconds(state, "timeout_start_vm"), setting="timeout_start_vm")


async def start_within(guest: Guest, timeout_s: float, *, setting: str) -> None:
    """Start a VM and wait until it runs.

    Args:
        guest: The VM.
        timeout_s: How long it may take.
        setting: The attribute that says so.

    Raises:
        TimeLimitError: It does not run in time.
    """
    upid = await guest.run(
        "status/start", {"timeout": int(timeout_s)}, timeout_s=timeout_s, done="already running"
    )
    # One that is highly available is started by its manager, at some later time.
    if ":hastart:" in upid:
        await _until(guest, "running", timeout_s, setting)


async def stop(guest: Guest, state: Object, *, config: Mapping[str, Any] | None = None) -> None:
    """Stop a VM: through its agent when it has one, else at once."""
    found = await guest.current() if config is None else config
    if has_agent(found):
        name, timeout_s = "timeout_shutdown_vm", seconds(state, "timeout_shutdown_vm")
        await shut_down_within(guest, timeout_s, setting=name)
    else:
        await stop_within(guest, seconds(state, "timeout_stop_vm", 300), setting="timeout_stop_vm")


async def shut_down_within(guest: Guest, timeout_s: float, *, setting: str) -> None:
    """Ask a VM to shut down, and stop it when it has not in time."""
    params = {"forceStop": True, "timeout": int(timeout_s)}
    upid = await guest.run("status/shutdown", params, timeout_s=timeout_s + 60, done="not running")
    if ":hastop:" in upid:
        await _until(guest, "stopped", timeout_s, setting)


async def stop_within(guest: Guest, timeout_s: float, *, setting: str) -> None:
    """Stop a VM at once."""
    upid = await guest.run("status/stop", timeout_s=timeout_s, done="not running")
    if ":hastop:" in upid:
        await _until(guest, "stopped", timeout_s, setting)


async def restart(guest: Guest, state: Object) -> None:
    """Restart a VM that runs, so that pending changes come into force."""
    config = await guest.current()
    timeout_s = seconds(state, "timeout_reboot")
    # An agent that does not answer would let the restart wait until it is given up.
    if has_agent(config) and await _answers(guest, min(timeout_s, agent_timeout_s(state))):
        await guest.run("status/reboot", {"timeout": int(timeout_s)}, timeout_s=timeout_s + 60)
    else:
        await stop(guest, state, config=config)
        await start(guest, state)


async def make_template(guest: Guest, state: Object) -> None:
    """Make a VM that does not run a template, unless it is one."""
    timeout_s = seconds(state, "timeout_create")
    await guest.run("template", timeout_s=timeout_s, done="you can't convert a template")


async def _until(guest: Guest, wanted: str, timeout_s: float, setting: str) -> None:
    """Wait for the manager of high availability, which acts at a time of its own."""
    what, pauses = f"The wait until VM {guest.vm_id} is {wanted}", iter(_BACKOFF)
    async with time_limit(timeout_s, what=what, setting=setting):
        while (await guest.status()).get("status") != wanted:
            await guest.work.client.pause(next(pauses))


def agent_timeout_s(state: Object) -> float:
    """Return how long to wait for the agent of a VM."""
    return duration_s((known_block(state, "agent") or {}).get("timeout") or "15m")


async def _answers(guest: Guest, timeout_s: float) -> bool:
    deadline, pauses = time.monotonic() + timeout_s, iter(_BACKOFF)
    while True:
        try:
            await guest.work.client.post(f"{guest.path}/agent/ping", repeatable=True)
        except proxmox.RefusedError as err:
            if err.status == 403 or time.monotonic() >= deadline:
                return False
        else:
            return True
        await guest.work.client.pause(next(pauses))


async def addresses(guest: Guest, state: Object, config: Mapping[str, Any], *, wait: bool) -> Object:
    """Return the addresses that the agent of a running VM tells.

    Args:
        guest: The VM.
        state: How long to wait, and for which addresses.
        config: Its configuration.
        wait: Whether to wait for them; otherwise an agent that does not answer leaves what is known.
    """
    agent = known_block(state, "agent") or {}
    awaited = known_block(agent, "wait_for_ip") or {}
    if not has_agent(config):
        return dict(NO_ADDRESSES)
    if awaited.get("disabled"):
        return NO_ADDRESSES | {"mac_addresses": []}
    wanted = {kind for kind in ("ipv4", "ipv6") if awaited.get(kind)}
    if wait:
        guest.work.session.waits.report(guest.vm_id, "its guest agent")
    found, problem = await _ask(guest, wanted, agent_timeout_s(state) if wait else 0)
    if found is not None:
        return read_addresses(found)
    if wait:
        guest.work.warn("The guest agent told no addresses in time", problem)
        return dict(NO_ADDRESSES)
    return {}


async def _ask(
    guest: Guest, wanted: set[str], timeout_s: float
) -> tuple[tuple[proxmox.GuestInterface, ...] | None, str]:
    """Return what the agent reports, or None and why it is not enough."""
    deadline, pauses = time.monotonic() + timeout_s, iter(_BACKOFF)
    while True:
        try:
            found = await proxmox.read_agent_interfaces(guest.work.client, guest.node, guest.vm_id)
        except proxmox.RefusedError as err:
            problem = str(err)
            if err.status == 403:
                return None, problem
        except proxmox.GuestReportError as err:
            # Time does not mend it, as it does where the guest has only begun to boot.
            return None, f"The report of VM {guest.vm_id} cannot be used: {err}"
        else:
            if has_address(found, wanted):
                return found, ""
            problem = f"The agent of VM {guest.vm_id} does not tell the addresses that are waited for."
        if time.monotonic() >= deadline:
            return None, problem
        try:
            await guest.work.client.pause(next(pauses))
        except InterruptedRunError:
            # The VM is complete; that nobody waits for its addresses any more does not make it a failure.
            return None, f"The wait for the agent of VM {guest.vm_id} was interrupted."
