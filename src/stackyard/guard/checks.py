"""The table of what Proxmox would refuse: each row says what is checked, what it reads, and the refusal.

`plan`, `preflight` and `import` all go through it. A row is asked only for what a plan does: one that changes
nothing asks nothing. What cannot be read is reported as not known, and refuses nothing: only what would be
taken away from others is refused as long as nobody can tell who uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.guard import (
    capacity,
    cluster_names,
    hardware,
    interruption,
    node_interfaces,
    pci_mappings,
    placement,
    privileges,
    replication,
    sources,
    storage_places,
)
from stackyard.guard.findings import UNKNOWN, Finding
from stackyard.guard.hypervisor import administrators, dependants, firewall_uses, lockout, management

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stackyard.base.diagnostics import Kind
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "NAMES",
    "PLACEMENT",
    "TABLE",
    "UNKNOWN",
    "GuardCheck",
    "find_refusals",
    "list_follow_ups",
    "list_reads",
]


def follow_nothing(_implied: ImpliedCalls, _facts: Facts) -> Iterable[ApiRead]:
    """Read nothing more."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardCheck:
    """One thing that is known before the first change.

    Attributes:
        name: The check of `preflight` that it belongs to.
        what: What is checked.
        ask: Returns what to read of the API.
        find: Returns the refusals.
        follow: Returns what to read then, given what was answered.
        unknown: What it is that something cannot be read.
    """

    name: str
    what: str
    ask: Callable[[ImpliedCalls, Cluster], Iterable[ApiRead]]
    find: Callable[[ImpliedCalls, Facts], Iterable[Finding]]
    follow: Callable[[ImpliedCalls, Facts], Iterable[ApiRead]] = follow_nothing
    unknown: Kind = UNKNOWN


TABLE: tuple[GuardCheck, ...] = (
    GuardCheck(
        name="rights",
        what="the token has every privilege that the calls need",
        ask=privileges.ask_rights,
        find=privileges.find_rights,
    ),
    GuardCheck(
        name="rights",
        what="nothing is asked for that root@pam alone may do",
        ask=placement.ask_nothing,
        find=privileges.find_root_only,
    ),
    GuardCheck(
        name="node",
        what="the nodes exist and are online",
        ask=placement.ask_nothing,
        find=placement.find_nodes,
    ),
    GuardCheck(
        name="datastores",
        what="the datastores exist",
        ask=placement.ask_datastores,
        find=placement.find_datastores,
    ),
    GuardCheck(
        name="datastores",
        what="the datastores take what goes onto them",
        ask=placement.ask_nothing,
        find=placement.find_contents,
    ),
    GuardCheck(
        name="datastores",
        what="disks can be replicated",
        ask=placement.ask_nothing,
        find=replication.find_replications,
    ),
    GuardCheck(
        name="bridges",
        what="the bridges exist",
        ask=placement.ask_bridges,
        find=placement.find_bridges,
    ),
    GuardCheck(
        name="pools",
        what="the pools exist",
        ask=placement.ask_pools,
        find=placement.find_pools,
    ),
    GuardCheck(
        name="images",
        what="images, templates, ISO files and snippets are on their datastores",
        ask=sources.ask_volumes,
        find=sources.find_volumes,
    ),
    GuardCheck(
        name="images",
        what="disks are as large as their images",
        ask=sources.ask_sizes,
        find=sources.find_small_disks,
    ),
    GuardCheck(
        name="images",
        what="sources of clones are there, and no larger",
        ask=sources.ask_clones,
        find=sources.find_clones,
    ),
    GuardCheck(
        name="capacity",
        what="there is memory for the guests",
        ask=placement.ask_nothing,
        find=capacity.find_memory,
    ),
    GuardCheck(
        name="capacity",
        what="there is room for new disks",
        ask=placement.ask_nothing,
        find=capacity.find_room,
    ),
    GuardCheck(
        name="processors",
        what="no virtual machine has more processors than its node",
        ask=placement.ask_nothing,
        find=hardware.find_processors,
    ),
    GuardCheck(
        name="processors",
        what="the nodes know the CPU models",
        ask=hardware.ask_cpu_models,
        find=hardware.find_cpu_models,
    ),
    GuardCheck(
        name="processors",
        what="the nodes let guests set the CPU flags",
        ask=hardware.ask_cpu_flags,
        find=hardware.find_cpu_flags,
    ),
    GuardCheck(
        name="processors",
        what="the nodes have the machine types",
        ask=hardware.ask_machines,
        find=hardware.find_machines,
    ),
    GuardCheck(
        name="devices",
        what="PCI devices and mappings exist",
        ask=hardware.ask_devices,
        find=hardware.find_devices,
    ),
    GuardCheck(
        name="devices",
        what="PCI mappings are the devices of their nodes",
        ask=pci_mappings.ask_pci_mappings,
        find=pci_mappings.find_pci_mappings,
    ),
    GuardCheck(
        name="hypervisor",
        what="something still uses what would be taken away",
        ask=dependants.ask_dependants,
        find=dependants.find_dependants,
        unknown=dependants.USE_UNKNOWN,
    ),
    GuardCheck(
        name="hypervisor",
        what="a rule still names what would be taken from the firewall",
        ask=firewall_uses.ask_firewall_uses,
        find=firewall_uses.find_firewall_uses,
        follow=firewall_uses.follow_firewall_uses,
        unknown=dependants.USE_UNKNOWN,
    ),
    GuardCheck(
        name="hypervisor",
        what="an administrator is left, and the token keeps its rights",
        ask=administrators.ask_access,
        find=administrators.find_lost_rights,
        unknown=administrators.ACCESS_UNKNOWN,
    ),
    GuardCheck(
        name="hypervisor",
        what="the firewall lets this machine in",
        ask=lockout.ask_firewall,
        find=lockout.find_lockouts,
        follow=lockout.follow_firewall,
    ),
    GuardCheck(
        name="hypervisor",
        what="others have left changes of interfaces pending",
        ask=interruption.ask_pending_interfaces,
        find=interruption.find_pending_interfaces,
    ),
    GuardCheck(
        name="hypervisor",
        what="the nodes keep their management addresses",
        ask=management.ask_interfaces,
        find=management.find_cuts,
    ),
    GuardCheck(
        name="cluster",
        what="the cluster has what is used by name",
        ask=cluster_names.ask_cluster_names,
        find=cluster_names.find_cluster_names,
    ),
    GuardCheck(
        name="cluster",
        what="the nodes have the interfaces that others are made of, and nothing else uses them",
        ask=node_interfaces.ask_node_interfaces,
        find=node_interfaces.find_node_interfaces,
    ),
    GuardCheck(
        name="cluster",
        what="no two storages are in the same place",
        ask=storage_places.ask_storage_places,
        find=storage_places.find_storage_places,
    ),
)
# What is used of the layers below by name: it is checked before an engine plans.
_NAMED = (
    placement.find_datastores,
    placement.find_bridges,
    placement.find_pools,
    hardware.find_devices,
    cluster_names.find_cluster_names,
    node_interfaces.find_node_interfaces,
    pci_mappings.find_pci_mappings,
    storage_places.find_storage_places,
)
NAMES = tuple(row for row in TABLE if row.find in _NAMED)
# What the list of the cluster alone answers.
PLACEMENT = ("node", "datastores", "bridges", "capacity")


def list_reads(
    implied: ImpliedCalls, cluster: Cluster, rows: Iterable[GuardCheck] = TABLE
) -> frozenset[ApiRead]:
    """Return everything that the rows read for a plan."""
    return frozenset(question for row in rows for question in row.ask(implied, cluster))


def list_follow_ups(implied: ImpliedCalls, facts: Facts) -> frozenset[ApiRead]:
    """Return everything that the rows read for a plan once they have their first answers."""
    found = (question for row in TABLE for question in row.follow(implied, facts))
    return frozenset(question for question in found if question not in facts.answers)


def find_refusals(
    implied: ImpliedCalls, facts: Facts, rows: Iterable[GuardCheck] = TABLE
) -> Iterator[Finding]:
    """Report what Proxmox would refuse, and what is not known."""
    for row in rows:
        yield from row.find(implied, facts)
        unanswered = {facts.unanswered[q] for q in row.ask(implied, facts.cluster) if q in facts.unanswered}
        for reason in sorted(unanswered):
            yield Finding(kind=row.unknown, detail=f"Whether {row.what} is not known: {reason}")
