"""What would keep an apply from changing guests that are taken over: lines for the user, and no refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.desired import Container, Desired, Vm
from stackyard.guard.checks import find_refusals, list_reads
from stackyard.guard.implied import ImpliedCalls
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.locate import by_label
from stackyard.path.survey import survey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.desired import Guest
    from stackyard.guard import Finding
    from stackyard.path.target import Resolved

__all__ = ["foresee"]


async def foresee(resolved: Resolved, guests: Sequence[Guest]) -> tuple[Finding, ...]:
    """Return what Proxmox would refuse if these guests were changed or started.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    desired = Desired(
        vms=tuple(guest for guest in guests if isinstance(guest, Vm)),
        containers=tuple(guest for guest in guests if isinstance(guest, Container)),
    )
    implied = ImpliedCalls.of_existing(desired)
    async with proxmox.Client(resolved.connection) as client:
        cluster = await survey(client, {guest.node for guest in guests})
        wanted = list_reads(implied, cluster)
        facts = await read_facts(client, cluster, wanted, caller=caller_of(resolved.connection))
    locate = by_label(resolved.locate, desired)
    return tuple(finding.locate(locate) for finding in find_refusals(implied, facts))
