"""Gateways and name servers: whether guests and the host find their way out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.clients.proxmox import quote
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.desired import Guest
    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = ["check_network"]

_SERVERS = ("dns1", "dns2", "dns3")


async def check_network(reachable: ReachableHost) -> Observation:
    """Check that the host has a way out and name servers, and that guests with fixed addresses have both."""
    path = f"/nodes/{quote(reachable.node)}"
    names, interfaces = await asyncio.gather(
        reachable.client.get(f"{path}/dns"), reachable.client.get(f"{path}/network")
    )
    found = Diagnostics()
    servers = [str(names[key]) for key in _SERVERS if names.get(key)]
    if not servers:
        found.add(kinds.NAMES, f"{reachable.node} has no name server: it can download nothing by name.")
    gateways = sorted(
        {str(row[key]) for row in interfaces for key in ("gateway", "gateway6") if row.get(key)}
    )
    if not gateways:
        found.add(kinds.WAY_OUT, f"No interface of {reachable.node} has a gateway.")
    for guest in reachable.desired.guests:
        _check_guest(guest, has_servers=bool(servers), found=found)
    return Observation(text=_text(servers, gateways), findings=tuple(found))


def _check_guest(guest: Guest, *, has_servers: bool, found: Diagnostics) -> None:
    fixed = [nic for nic in guest.nics if "/" in f"{nic.ipv4 or ''}{nic.ipv6 or ''}"]
    leases = [nic for nic in guest.nics if "dhcp" in (nic.ipv4, nic.ipv6)]
    if not fixed or leases:
        return
    if not any(nic.gateway4 or nic.gateway6 for nic in fixed):
        found.add(kinds.WAY_OUT, f"{guest.name} has a fixed address and no gateway.")
    if not has_servers and not (guest.dns is not None and guest.dns.servers):
        found.add(
            kinds.NAMES, f"{guest.name} has a fixed address, and neither it nor its host a name server."
        )


def _text(servers: list[str], gateways: list[str]) -> str:
    parts: Mapping[str, Any] = {"gateway": gateways, "names from": servers}
    return "; ".join(f"{name} {', '.join(values)}" for name, values in parts.items() if values) or "none"
