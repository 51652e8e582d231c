"""What every node of a cluster is: for Talos, for etcd and for Kubernetes; and who is there beside them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.talos.kubeconfig import fetch_kubeconfig
from stackyard.bootstrap.talos.members import ask_etcd, list_strange
from stackyard.bootstrap.talos.status import read_status
from stackyard.clients.kubernetes import KubernetesClient, Patience, Selection, parse_kubeconfig
from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.bootstrap.talos.members import EtcdMember, NodeEtcd
    from stackyard.bootstrap.talos.status import NodeStatus
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["ClusterNodes", "KubernetesNode", "NodeReport", "read_nodes"]

_ETCD_STATUS = "/machine.MachineService/EtcdStatus"
_STATUS = ("MachineStatuses.runtime.talos.dev", "runtime", "machine")
# Its answer is one of many: a cluster that is down is reported, not waited for.
_PATIENCE = Patience(answer_s=10.0, away_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesNode:
    """A node as Kubernetes sees it.

    Attributes:
        name: Its name.
        is_ready: Whether Kubernetes calls it Ready.
        reason: Why it is not, empty if it is.
        version: The version of its kubelet, without `v`.
        address: Its address inside the cluster, empty if it has none.
    """

    name: str
    is_ready: bool
    reason: str
    version: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What is known of a node of the file.

    Attributes:
        status: What Talos says, and its services.
        stage: The stage of the machine; that of the status where it cannot be asked.
        unmet: Why it is not ready, each a condition of Talos with its reason.
        etcd: `leader`, `member`, `learner` or `none`; empty for a worker and where it cannot be asked.
        kubernetes: What Kubernetes says; None where it does not know it.
    """

    status: NodeStatus
    stage: str
    unmet: tuple[str, ...] = ()
    etcd: str = ""
    kubernetes: KubernetesNode | None = None

    @property
    def node(self) -> ClusterNode:
        """The node."""
        return self.status.node


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNodes:
    """All nodes, and who is there beside them.

    Attributes:
        reports: The nodes of the file, in its order.
        members: The members of etcd; empty where no control plane node answers for it.
        strange_members: Members of etcd that are no node of the file: removed nodes that did not leave it.
        no_members: The names of control plane nodes that are no members.
        strange_nodes: Nodes of Kubernetes that are no node of the file.
        kubernetes_reason: Why Kubernetes could not be asked, empty if it could.
    """

    reports: tuple[NodeReport, ...]
    members: tuple[EtcdMember, ...] = ()
    strange_members: tuple[EtcdMember, ...] = ()
    no_members: tuple[str, ...] = ()
    strange_nodes: tuple[KubernetesNode, ...] = ()
    kubernetes_reason: str = ""


async def read_nodes(cluster: Cluster, access: TalosAccess) -> ClusterNodes:
    """Ask all nodes, etcd and Kubernetes at the same time; what does not answer is reported as such."""
    statuses, machines, etcds, (known, reason) = await asyncio.gather(
        read_status(cluster, access),
        asyncio.gather(*(_read_machine(node, access) for node in cluster.nodes)),
        ask_etcd(cluster.controllers, access),
        _read_kubernetes(cluster, access),
    )
    reports = tuple(
        NodeReport(
            status=status,
            stage=machine.stage or status.stage,
            unmet=machine.unmet,
            etcd=machine.etcd,
            kubernetes=known.get(status.node.name),
        )
        for status, machine in zip(statuses, machines, strict=True)
    )
    names = {node.name for node in cluster.nodes}
    members = next((one.members for one in etcds if one.has_etcd), ())
    return ClusterNodes(
        reports=reports,
        members=members,
        strange_members=list_strange(etcds),
        no_members=tuple(one.node.name for one in etcds if not _is_member(one, members)),
        strange_nodes=tuple(one for name, one in known.items() if name not in names),
        kubernetes_reason=reason,
    )


def _is_member(asked: NodeEtcd, members: tuple[EtcdMember, ...]) -> bool:
    """Return whether a node is a member: by its own number, or as far as others know it."""
    if asked.has_etcd:
        return any(one.number == asked.number for one in members)
    name, address = asked.node.name, str(asked.node.address)
    return any(one.name == name or address in one.addresses for one in members)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    stage: str = ""
    unmet: tuple[str, ...] = ()
    etcd: str = ""


async def _read_machine(node: ClusterNode, access: TalosAccess) -> _Machine:
    try:
        async with access.open(node) as client:
            found = await client.read_resource(*_STATUS)
            etcd = await _read_etcd(client) if node.is_controller else ""
    except TalosError:
        return _Machine()
    status = found.get("status") or {}
    unmet = tuple(f"{one['name']}: {one['reason']}" for one in status.get("unmetConditions") or ())
    return _Machine(stage=str(found.get("stage", "")), unmet=unmet, etcd=etcd)


async def _read_etcd(client: TalosClient) -> str:
    try:
        answer = await client.call(_ETCD_STATUS)
    except TalosError:
        return "none"
    status = answer.messages[0].member_status
    if status.is_learner:
        return "learner"
    return "leader" if status.leader == status.member_id else "member"


async def _read_kubernetes(cluster: Cluster, access: TalosAccess) -> tuple[Mapping[str, KubernetesNode], str]:
    try:
        kubeconfig = await fetch_kubeconfig(cluster.controllers, access)
        async with KubernetesClient(parse_kubeconfig(kubeconfig), _PATIENCE) as client:
            found = await client.list_objects(Selection(api_version="v1", kind="Node"))
    except StackyardError as err:
        return {}, err.detail
    return {one.name: one for one in map(_kubernetes_node, found)}, ""


def _kubernetes_node(found: Mapping[str, Any]) -> KubernetesNode:
    status = found.get("status") or {}
    conditions: dict[str, Any] = {one.get("type"): one for one in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    inside = (one for one in status.get("addresses") or () if one.get("type") == "InternalIP")
    is_ready = ready.get("status") == "True"
    return KubernetesNode(
        name=str(found["metadata"]["name"]),
        is_ready=is_ready,
        reason="" if is_ready else str(ready.get("message") or ready.get("reason") or "it reports nothing"),
        version=str((status.get("nodeInfo") or {}).get("kubeletVersion", "")).removeprefix("v"),
        address=next((str(one.get("address", "")) for one in inside), ""),
    )
