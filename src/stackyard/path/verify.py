"""Proof that a guest is up: it runs, its agent answers, its address is known, its ports accept.

Proxmox has no events for any of this, so it is asked: at once, then with growing pauses. Each guest has its
own timeout and is watched by itself, so that one that never comes up holds up no one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError
from stackyard.clients.proxmox import (
    GuestReportError,
    RefusedError,
    read_agent_interfaces,
    read_container_interfaces,
)
from stackyard.desired import Container, Vm
from stackyard.fields.guest import split_tags
from stackyard.guard.cluster import OWNER_TAG
from stackyard.path.port_probe import PortProbe, UnansweredError, probe_directly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.proxmox import Client
    from stackyard.desired import Guest

__all__ = ["GuestDownError", "GuestUp", "verify_guest"]

_BACKOFF = Backoff(0.05, 2.0, growth=1.5)


class GuestDownError(StackyardError):
    """A guest was created or changed, and did not come up in its time."""

    code = "E-GUEST-DOWN"
    summary = "A guest is not up"
    default_remedy = "Look at its console; apply again to check once more, or give it more time."


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestUp:
    """A guest that was seen to be up.

    Attributes:
        key: Its key in the model.
        name: Its name.
        vm_id: Its number.
        node: Where it runs.
        addresses: What it reports.
        took_s: How long it took from the beginning of its change until it was up.
    """

    key: str
    name: str
    vm_id: int
    node: str
    addresses: tuple[str, ...]
    took_s: float


class _PendingChecks(Exception):  # noqa: N818 -- not an error: a reason to look again
    """What is still missing."""


async def verify_guest(
    client: Client,
    guest: Guest,
    *,
    probe_port: PortProbe = probe_directly,
    emit: events.Emit = events.ignore,
    since_s: float | None = None,
) -> GuestUp:
    """Wait until a guest is up.

    Args:
        client: Speaks to its cluster.
        guest: The guest.
        probe_port: How its ports are tried.
        emit: Told what is waited for.
        since_s: When its change began, on the monotonic clock, if that is earlier: the engine has waited
            for much of the boot by now.

    Raises:
        GuestDownError: It did not come up in its time; the error says what was missing.
        ProxmoxError: Proxmox does not answer.
    """
    began_s = time.monotonic()
    with events.step(emit, f"verify {guest.key}", f"Waiting for {guest.name}") as step:
        missing = "Proxmox to list it"
        for pause_s in _BACKOFF:
            try:
                up = await _look(client, guest, probe_port, began_s if since_s is None else since_s)
            except _PendingChecks as err:
                if str(err) != missing:
                    step.waiting(str(err))
                missing = str(err)
            else:
                return up
            left_s = guest.verify.timeout_s - (time.monotonic() - began_s)
            if left_s <= 0:
                break
            await client.pause(min(pause_s, left_s))
        raise GuestDownError(
            f"{guest.name} is not up after {guest.verify.timeout_s} s: waiting for {missing}."
        )


async def _look(client: Client, guest: Guest, probe_port: PortProbe, began_s: float) -> GuestUp:
    """Look once.

    Raises:
        _PendingChecks: With what is missing.
    """
    vm_id, node = await _find(client, guest)
    addresses = await _addresses(client, guest, vm_id, node)
    await _ports(guest, addresses, probe_port)
    return GuestUp(
        key=guest.key,
        name=guest.name,
        vm_id=vm_id,
        node=node,
        addresses=addresses,
        took_s=round(time.monotonic() - began_s, 3),
    )


async def _find(client: Client, guest: Guest) -> tuple[int, str]:
    """Return where a guest is; one call serves all guests that are looked for at once."""
    kind = "lxc" if isinstance(guest, Container) else "qemu"
    rows = await client.get("/cluster/resources", {"type": "vm"}, max_age_s=_BACKOFF.first_s)
    found = [row for row in rows if row["type"] == kind and _is_same(guest, row)]
    if not found:
        raise _PendingChecks("Proxmox to list it")
    row = next((row for row in found if row["node"] == guest.node), found[0])
    if row.get("status") != "running":
        raise _PendingChecks("it to run")
    return int(row["vmid"]), str(row["node"])


def _is_same(guest: Guest, row: dict[str, Any]) -> bool:
    """Return whether a row is a guest: by its id, or by its name where a manifest of the same tag has it."""
    if guest.vm_id is not None:
        return bool(row["vmid"] == guest.vm_id)
    owners = {tag for tag in guest.tags if tag.startswith(OWNER_TAG)}
    return row.get("name") == guest.name and owners <= set(split_tags(row.get("tags")))


async def _addresses(client: Client, guest: Guest, vm_id: int, node: str) -> tuple[str, ...]:
    wants_agent = isinstance(guest, Vm) and guest.agent.enabled and guest.verify.agent
    if not wants_agent and not (isinstance(guest, Container) and guest.verify.address):
        return ()
    try:
        read = read_container_interfaces if isinstance(guest, Container) else read_agent_interfaces
        found = await read(client, node, vm_id)
    except RefusedError as err:
        raise _PendingChecks("its agent" if wants_agent else "its interfaces") from err
    except GuestReportError as err:
        raise GuestDownError(
            f"{guest.name} ({vm_id} on {node}) reports addresses that cannot be used: {err}",
            remedy="Look at its console and at what runs inside of it, then apply again.",
        ) from err
    addresses = tuple(address for interface in found for address in interface.usable())
    if guest.verify.address and guest.nics and not addresses:
        raise _PendingChecks("an address")
    return addresses


async def _ports(guest: Guest, addresses: Sequence[str], probe_port: PortProbe) -> None:
    ports = [*guest.verify.tcp_ports, *([22] if guest.verify.ssh else [])]
    if not ports:
        return
    if not addresses:
        raise _PendingChecks("an address")
    for port in dict.fromkeys(ports):
        await _port(addresses[0], port, probe_port, is_ssh=port == 22 and guest.verify.ssh)


async def _port(address: str, port: int, probe_port: PortProbe, *, is_ssh: bool) -> None:
    try:
        greeting = await probe_port(address, port, waits_for_line=is_ssh)
    except UnansweredError as err:
        raise _PendingChecks(f"{address}:{port}") from err
    if is_ssh and not greeting.startswith(b"SSH-"):
        raise _PendingChecks(f"SSH on {address}:{port}")
