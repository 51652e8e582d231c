"""Removing nodes that the files no longer have: from etcd first, then from Kubernetes."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.changes.health import UnhealthyError
from stackyard.bootstrap.changes.nodes import read_nodes
from stackyard.bootstrap.talos.members import ask_etcd
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.kubernetes import ObjectReference
from stackyard.clients.talos import TalosClient, TalosEndpoint, TalosError
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.bootstrap.changes.nodes import KubernetesNode
    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.bootstrap.talos.members import EtcdMember
    from stackyard.clients.kubernetes import KubernetesClient
    from stackyard.sources.cluster.model import Cluster

__all__ = ["NodeDescribedError", "NodeRemoval", "RemovedNode", "find_removed"]

_LEAVE = "/machine.MachineService/EtcdLeaveCluster"
_REMOVE = "/machine.MachineService/EtcdRemoveMemberByID"
_STATUS = "/machine.MachineService/EtcdStatus"
_GONE = "NOT_FOUND"


class NodeDescribedError(StackyardError):
    """A node is to be removed that the files of the cluster describe."""

    code = "E-CLUSTER-NODE-DESCRIBED"
    summary = "The node is in the files of the cluster"
    default_remedy = "Take it out of nodes.yaml first; then run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedNode:
    """What a cluster still has of a node that its files no longer have.

    Attributes:
        name: Its name.
        member: Its member of etcd, None where it has none.
        kubernetes: Its node of Kubernetes, None where it has none.
    """

    name: str
    member: EtcdMember | None = None
    kubernetes: KubernetesNode | None = None


async def find_removed(cluster: Cluster, access: TalosAccess, name: str) -> RemovedNode:
    """Return what is left of a node.

    Raises:
        NodeDescribedError: The files have it.
        UnhealthyError: etcd or Kubernetes cannot be asked, so that nothing can be said.
    """
    if any(node.name == name for node in cluster.nodes):
        raise NodeDescribedError(f"{cluster.name} has the node {name}. Nothing was changed.")
    found = await read_nodes(cluster, access)
    if not found.members:
        raise UnhealthyError("No control plane node answers for etcd. Nothing was changed.")
    if found.kubernetes_reason:
        raise UnhealthyError(f"Kubernetes: {found.kubernetes_reason} Nothing was changed.")
    return RemovedNode(
        name=name,
        # Over all members: at its address, there may be another node since.
        member=next((one for one in found.members if one.name == name), None),
        kubernetes=next((one for one in found.strange_nodes if one.name == name), None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRemoval:
    """Removes what a cluster still has of a node.

    Attributes:
        cluster: The cluster, without the node.
        access: The API of its nodes.
        open_client: Opens the Kubernetes API.
        timeout_s: How long etcd may take to be without it.
    """

    cluster: Cluster
    access: TalosAccess = field(repr=False)
    open_client: Callable[[], Awaitable[KubernetesClient]] = field(repr=False)
    timeout_s: float = 300.0

    async def leave_etcd(self, member: EtcdMember, report: Report) -> None:
        """Let a node leave etcd: by itself if it answers, otherwise by another one.

        Raises:
            UnhealthyError: etcd would lose its majority; nothing was changed.
            TalosError: etcd does not remove it.
            BootTimeoutError: It is still a member.
        """
        await self._require_majority_without(member)
        report(f"{member.name} to leave etcd")
        if not await self._leaves_by_itself(member):
            await self._remove(member)

        async def is_gone() -> str:
            found = await ask_etcd(self.cluster.controllers, self.access)
            is_there = any(row.number == member.number for one in found for row in one.members)
            return f"{member.name} to leave etcd" if is_there else ""

        await wait_for(is_gone, what=f"{member.name} to leave etcd", timeout_s=self.timeout_s, report=report)

    async def leave_kubernetes(self, name: str, report: Report) -> None:
        """Remove the node of Kubernetes; its pods are started elsewhere.

        Raises:
            KubernetesError: Kubernetes does not remove it.
        """
        report(f"Kubernetes to forget {name}")
        client = await self.open_client()
        await client.delete(ObjectReference("v1", "Node", name))

    async def list_silent(self) -> frozenset[int]:
        """Return the numbers of the members of etcd whose nodes do not answer for it.

        Raises:
            UnhealthyError: No node answers for etcd.
        """
        members = await self._list_members()
        answers = await asyncio.gather(*(self._answers(member) for member in members))
        return frozenset(one.number for one, does in zip(members, answers, strict=True) if not does)

    async def _list_members(self) -> tuple[EtcdMember, ...]:
        found = await ask_etcd(self.cluster.controllers, self.access)
        members = next((one.members for one in found if one.has_etcd), ())
        if not members:
            raise UnhealthyError("No control plane node answers for etcd. Nothing was changed.")
        return members

    async def _answers(self, member: EtcdMember) -> bool:
        for address in sorted(member.addresses):
            with contextlib.suppress(TalosError):
                async with self._open(address) as client:
                    if await _is_member(client, member):
                        return True
        return False

    def _open(self, address: str) -> TalosClient:
        endpoint = TalosEndpoint(host=address, credentials=self.access.credentials)
        return TalosClient(endpoint, timeout_s=self.access.timeout_s)

    async def _require_majority_without(self, member: EtcdMember) -> None:
        """Refuse to take a member away if those that answer would be no majority of the rest."""
        silent = await self.list_silent()
        rest = [one for one in await self._list_members() if one.number != member.number]
        away = [one.name for one in rest if one.number in silent]
        if (len(rest) - len(away)) * 2 <= len(rest):
            raise UnhealthyError(
                f"Without {member.name}, etcd would lose its majority: {', '.join(away)} does not answer. "
                f"{member.name} was not removed.",
                remedy="Bring the others back, or remove first what will not come back.",
            )

    async def _leaves_by_itself(self, member: EtcdMember) -> bool:
        """Return whether the node itself left: then its data is gone too, and it cannot come back."""
        for address in sorted(member.addresses):
            try:
                async with self._open(address) as client:
                    if not await _is_member(client, member):
                        continue
                    await client.call(_LEAVE, pb.EtcdLeaveClusterRequest())
            except TalosError:
                continue
            return True
        return False

    async def _remove(self, member: EtcdMember) -> None:
        """Let another node remove it.

        Raises:
            TalosError: None of them does; the reason is that of the last.
        """
        request = pb.EtcdRemoveMemberByIDRequest(member_id=member.number)
        for number, node in enumerate(self.cluster.controllers, 1):
            try:
                async with self.access.open(node) as client:
                    await client.call(_REMOVE, request)
            except TalosError as err:
                if getattr(err, "status", "") == _GONE:
                    return
                if number == len(self.cluster.controllers):
                    raise
            else:
                return


async def _is_member(client: TalosClient, member: EtcdMember) -> bool:
    """Return whether the node that answers is a member: another one may have its address by now.

    Raises:
        TalosError: It cannot be asked.
    """
    answer = await client.call(_STATUS)
    return any(one.member_status.member_id == member.number for one in answer.messages)
