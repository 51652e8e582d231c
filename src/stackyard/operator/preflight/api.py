"""Whether the API answers, is the right one, takes our token, and has the right time."""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Diagnostics
from stackyard.clients.proxmox import (
    LoginRefusedError,
    ProxmoxUnreachableError,
    RefusedError,
    UntrustedServerError,
    quote,
)
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import StackyardError
    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = ["OLDEST_MAJOR", "check_certificate", "check_clock", "check_version", "is_link_local", "refusal"]

OLDEST_MAJOR = 8
_SOON = datetime.timedelta(days=21)
# Proxmox tells whole seconds; what the way there and back took is not known more exactly either.
_TOLERANCE_S = 5.0
# The one that is served, where there is it, before that which every node has.
_SERVED = ("pveproxy-ssl.pem", "pve-ssl.pem")


def refusal(err: StackyardError) -> Diagnostic:
    """Return what it means that the first call of all failed."""
    kind = kinds.UNREACHABLE
    if isinstance(err, LoginRefusedError):
        kind = kinds.TOKEN
    elif isinstance(err, UntrustedServerError):
        kind = kinds.UNTRUSTED
    elif not isinstance(err, ProxmoxUnreachableError):
        return Diagnostic(
            kind=kinds.UNREACHABLE, detail=f"{err.detail} It is no Proxmox VE, or a broken one."
        )
    # What the error knows better than its kind: the line to correct, and what to write there.
    kind = dataclasses.replace(kind, remedy=err.remedy) if err.where is not None else kind
    return Diagnostic(kind=kind, detail=err.detail, where=err.where)


async def check_version(reachable: ReachableHost) -> Observation:
    """Check the version of Proxmox VE."""
    found = Diagnostics()
    major = reachable.version.partition(".")[0]
    if major.isdecimal() and int(major) < OLDEST_MAJOR:
        found.add(
            kinds.OLD_PROXMOX,
            f"{reachable.node} runs Proxmox VE {reachable.version}; tested is {OLDEST_MAJOR} and later.",
        )
    return Observation(text=f"Proxmox VE {reachable.version or 'of unknown version'}", findings=tuple(found))


async def check_certificate(reachable: ReachableHost) -> Observation:
    """Check how long the certificate of the host is good for."""
    found = Diagnostics()
    await _check_own_name(reachable, found)
    rows = await reachable.client.get(f"/nodes/{quote(reachable.node)}/certificates/info")
    by_name = {str(row.get("filename")): row for row in rows}
    served = next((by_name[name] for name in _SERVED if name in by_name), None)
    if served is None or "notafter" not in served:
        return Observation(text="trusted", findings=tuple(found))
    ends = datetime.datetime.fromtimestamp(int(served["notafter"]), datetime.UTC)
    left = ends - datetime.datetime.now(datetime.UTC)
    if left < _SOON:
        has = "ended" if left < datetime.timedelta() else "ends"
        found.add(kinds.CERTIFICATE_ENDS, f"The certificate of {reachable.node} {has} on {ends:%Y-%m-%d}.")
    return Observation(text=f"trusted, until {ends:%Y-%m-%d}", findings=tuple(found))


async def _check_own_name(reachable: ReachableHost, found: Diagnostics) -> None:
    """Find a name of the host that leads to a link-local address: no certificate can be made for that."""
    try:
        told = await reachable.client.get(f"/nodes/{quote(reachable.node)}/hosts")
    except RefusedError:
        # The check of rights names the privilege.
        return
    for line in str((told or {}).get("data", "")).splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if reachable.node in {name.partition(".")[0] for name in names} and is_link_local(address):
            found.add(kinds.LINK_LOCAL, f"/etc/hosts of {reachable.node} says `{line.strip()}`.")


def is_link_local(address: str) -> bool:
    """Return whether an address is good on one link alone, as `fe80::1%vmbr0`."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_link_local
    except ValueError:
        return False


async def check_clock(reachable: ReachableHost) -> Observation:
    """Check that the host and this machine agree on the time."""
    began_s = time.time()
    answer: Mapping[str, Any] = await reachable.client.get(f"/nodes/{quote(reachable.node)}/time")
    ended_s = time.time()
    there_s = float(answer["time"])
    # Whole seconds are cut, not rounded; anything between the question and the answer is right.
    ahead_s = there_s - ended_s if there_s > ended_s else min(0.0, there_s + 1 - began_s)
    found = Diagnostics()
    if abs(ahead_s) > _TOLERANCE_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        found.add(
            kinds.CLOCK, f"The clock of {reachable.node} is {abs(ahead_s):.0f} s {way} that of this machine."
        )
        return Observation(text=f"{abs(ahead_s):.0f} s {way} this machine", findings=tuple(found))
    return Observation(text="in step with this machine")
