"""What the control plane nodes of a cluster say of its etcd."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import ClusterNode

__all__ = [
    "EtcdMember",
    "EtcdSplitError",
    "NodeEtcd",
    "RemovedMemberError",
    "ask_etcd",
    "check_members",
    "find_etcd",
    "list_strange",
]

_SERVICES = "/machine.MachineService/ServiceList"
_MEMBERS = "/machine.MachineService/EtcdMemberList"
_STATUS = "/machine.MachineService/EtcdStatus"
_RUNNING = "Running"
# Before it is formed or joined, etcd waits in one of these; and for a while at each boot of a node with data.
_WITHOUT_DATA = frozenset(("", "Initialized", "Preparing", "Waiting", "Pre"))


class EtcdSplitError(StackyardError):
    """Nodes of one cluster are members of different etcds."""

    code = "E-ETCD-SPLIT"
    summary = "The control plane nodes have more than one etcd"
    default_remedy = (
        "Each of them is a cluster of its own. Decide which one to keep, and reset the nodes of the other: "
        "they join by themselves when the command is run again."
    )


class RemovedMemberError(StackyardError):
    """etcd has a member that the files of the cluster do not describe."""

    code = "E-ETCD-REMOVED-NODE"
    summary = "A node that is not described is a member of etcd"
    default_remedy = (
        "A member that is gone still counts for the majority. `stackyard cluster remove-node NAME` lets it "
        "leave etcd and Kubernetes. If it is meant to stay, describe it in nodes.yaml."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """A member of an etcd: its number, its host name, and the addresses that others reach it at."""

    number: int
    name: str
    addresses: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEtcd:
    """What a node says of its own etcd.

    Attributes:
        node: The node.
        reason: Why nothing is known of it; empty if something is.
        number: Its own number as a member; None where its etcd does not run.
        is_voter: Whether it counts for the majority: a new member learns first.
        members: The members that it knows.
    """

    node: ClusterNode
    reason: str = ""
    number: int | None = None
    is_voter: bool = False
    members: tuple[EtcdMember, ...] = ()

    @property
    def has_etcd(self) -> bool:
        """Whether its etcd runs."""
        return self.number is not None


async def ask_etcd(nodes: Iterable[ClusterNode], access: TalosAccess) -> tuple[NodeEtcd, ...]:
    """Return what each control plane node says of its etcd, in their order."""
    return tuple(await asyncio.gather(*(_ask(node, access) for node in nodes)))


async def find_etcd(
    nodes: tuple[ClusterNode, ...], access: TalosAccess, report: Report, *, quiet_s: float, timeout_s: float
) -> bool:
    """Return whether a node has etcd, once all could be asked: one that cannot be seen may have it.

    Args:
        nodes: The control plane nodes.
        access: The API of them.
        report: Called with what is waited for.
        quiet_s: How long all of them must say that they have none: a node that boots with data says so too.
        timeout_s: How long it may take until all of them answer.

    Raises:
        BootTimeoutError: One of them cannot be asked.
    """
    is_found, quiet_since = False, math.inf

    async def ask() -> str:
        nonlocal is_found, quiet_since
        found = await ask_etcd(nodes, access)
        is_found = any(one.has_etcd for one in found)
        unseen = next((one.reason for one in found if one.reason), "")
        if is_found or unseen:
            quiet_since = math.inf
            return "" if is_found else unseen
        quiet_since = min(quiet_since, time.monotonic())
        is_quiet = time.monotonic() - quiet_since >= quiet_s
        return "" if is_quiet else "an etcd that may be there to start"

    what = "all control plane nodes to answer"
    await wait_for(ask, what=what, timeout_s=timeout_s + quiet_s, report=report)
    return is_found


async def _ask(node: ClusterNode, access: TalosAccess) -> NodeEtcd:
    try:
        async with access.open(node) as client:
            state = await _read_state(client)
            if state in _WITHOUT_DATA:
                return NodeEtcd(node=node)
            if state != _RUNNING:
                # It may have data, and what it has cannot be asked now.
                return NodeEtcd(node=node, reason=f"etcd of {node.name} to run: it is {state}")
            status = (await client.call(_STATUS)).messages[0].member_status
            answer = await client.call(_MEMBERS)
    except TalosError as err:
        return NodeEtcd(node=node, reason=err.detail)
    return NodeEtcd(
        node=node,
        number=status.member_id,
        is_voter=not status.is_learner,
        members=tuple(_read_member(one) for message in answer.messages for one in message.members),
    )


async def _read_state(client: TalosClient) -> str:
    """Return the state of the service etcd; empty where there is none."""
    answer = await client.call(_SERVICES)
    services = (one for message in answer.messages for one in message.services)
    return next((str(one.state) for one in services if one.id == "etcd"), "")


def _read_member(member: Any) -> EtcdMember:
    hosts = (urlsplit(url).hostname for url in (*member.peer_urls, *member.client_urls))
    return EtcdMember(
        number=member.id,
        name=member.hostname,
        addresses=frozenset(host for host in hosts if host),
    )


def check_members(found: Iterable[NodeEtcd], *, is_before_change: bool = False) -> None:
    """Check that there is one etcd, and that it has no member which nobody describes.

    Args:
        found: What the nodes say.
        is_before_change: Whether VMs are changed next: a node that runs under a name of before loses its VM.

    Raises:
        EtcdSplitError: There are several.
        RemovedMemberError: A member is none of the nodes.
    """
    asked = tuple(found)
    running = [one for one in asked if one.has_etcd]
    for one in running[1:]:
        first = running[0]
        if not {row.number for row in one.members} & {row.number for row in first.members}:
            raise EtcdSplitError(
                f"{first.node.name} and {one.node.name} are members of different etcds, which know nothing "
                "of each other."
            )
    strange = {row.number: row for row in list_strange(asked)}
    if is_before_change:
        strange |= {row.number: row for row in _list_renamed(asked)}
    if strange:
        texts = sorted(f"{row.name} ({', '.join(sorted(row.addresses))})" for row in strange.values())
        raise RemovedMemberError(f"etcd has members that nodes.yaml does not have: {', '.join(texts)}.")


def list_strange(asked: Sequence[NodeEtcd]) -> tuple[EtcdMember, ...]:
    """Return the members that none of the nodes is.

    The name decides: another node may have the address since. While a node is unseen, its own number is not
    known, so that only those count whose name and address both are nobody's.
    """
    described = {str(one.node.address) for one in asked}
    names = {one.node.name for one in asked}
    running = {one.node.name: one.number for one in asked if one.has_etcd}
    is_unseen = any(one.reason for one in asked)

    def is_strange(row: EtcdMember) -> bool:
        if row.number in running.values():
            return False
        is_placed = bool(row.addresses & described)
        if row.name and row.name not in names:
            return not (is_unseen and is_placed)
        # A member gets its name when it starts, and may have addresses that only its node knows of. So it is
        # strange only if no node is left that it could be.
        owners = {row.name} if row.name else names
        return not is_placed and owners <= running.keys()

    return tuple(row for row in _list_rows(asked) if is_strange(row))


def _list_renamed(asked: Sequence[NodeEtcd]) -> tuple[EtcdMember, ...]:
    """Return the members that run at the address of a node, under a name that no node has."""
    names = {one.node.name for one in asked}
    own = {one.number for one in asked if one.has_etcd}
    return tuple(row for row in _list_rows(asked) if row.number in own and row.name and row.name not in names)


def _list_rows(asked: Sequence[NodeEtcd]) -> tuple[EtcdMember, ...]:
    return tuple({row.number: row for one in asked for row in one.members}.values())
