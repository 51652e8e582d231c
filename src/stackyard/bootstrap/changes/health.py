"""The health of a whole cluster: of each node, of etcd as the file has it, and of the nodes of Kubernetes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.changes.nodes import read_nodes
from stackyard.bootstrap.talos.health import list_node_problems
from stackyard.bootstrap.talos.wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.bootstrap.changes.nodes import ClusterNodes
    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import Cluster

__all__ = ["ETCD", "KUBERNETES", "Problem", "UnhealthyError", "list_problems", "wait_for_health"]

ETCD, KUBERNETES = "etcd", "Kubernetes"


class UnhealthyError(StackyardError):
    """A cluster is not healthy, so that nothing of it is changed now."""

    code = "E-CLUSTER-UNHEALTHY"
    summary = "The cluster is not healthy"
    default_remedy = (
        "Correct what the reasons name; `stackyard cluster health` shows them at any time. Then run the "
        "command again: it continues from there."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is not well.

    Attributes:
        part: The name of a node, `etcd` or `Kubernetes`.
        text: What it is.
    """

    part: str
    text: str

    def __str__(self) -> str:
        return f"{self.part}: {self.text}"


async def list_problems(
    cluster: Cluster, access: TalosAccess, *, needs_kubernetes: bool = True
) -> tuple[Problem, ...]:
    """Return what is not well now; nothing if the cluster is healthy.

    Args:
        cluster: The cluster.
        access: The API of its nodes.
        needs_kubernetes: Whether Kubernetes counts. Without a network plugin no node of it is ready.
    """
    found, of_nodes = await asyncio.gather(
        read_nodes(cluster, access),
        asyncio.gather(
            *(list_node_problems(node, access, needs_kubernetes=needs_kubernetes) for node in cluster.nodes)
        ),
    )
    problems = [
        Problem(part=node.name, text=text)
        for node, texts in zip(cluster.nodes, of_nodes, strict=True)
        for text in texts
    ]
    problems += [Problem(part=ETCD, text=text) for text in _etcd_problems(found)]
    if needs_kubernetes:
        # A node that says itself what it lacks is not reported twice.
        known = {one.part for one in problems}
        problems += [one for one in _kubernetes_problems(found) if one.part not in known]
    return tuple(problems)


def _etcd_problems(found: ClusterNodes) -> Iterator[str]:
    if not found.members:
        yield "no control plane node answers for it"
        return
    for name in found.no_members:
        yield f"{name} is no member"
    for member in found.strange_members:
        places = ", ".join(sorted(member.addresses))
        yield f"{member.name} ({places}) is a member, and no node of the file"


def _kubernetes_problems(found: ClusterNodes) -> Iterator[Problem]:
    if found.kubernetes_reason:
        yield Problem(part=KUBERNETES, text=found.kubernetes_reason)
        return
    for report in found.reports:
        if report.kubernetes is None:
            yield Problem(part=report.node.name, text="it is no node of Kubernetes")
        elif not report.kubernetes.is_ready:
            text = f"Kubernetes does not call it Ready: {report.kubernetes.reason}"
            yield Problem(part=report.node.name, text=text)
    for node in found.strange_nodes:
        yield Problem(part=KUBERNETES, text=f"{node.name} is a node of it, and no node of the file")


async def wait_for_health(
    cluster: Cluster,
    access: TalosAccess,
    report: Report,
    *,
    timeout_s: float,
    needs_kubernetes: bool = True,
    ignored: frozenset[str] = frozenset(),
) -> None:
    """Wait until a cluster is healthy, but for parts of it that need not be.

    Raises:
        BootTimeoutError: It is not in time, with what is not well.
    """

    async def look() -> str:
        found = await list_problems(cluster, access, needs_kubernetes=needs_kubernetes)
        return "; ".join(str(one) for one in found if one.part not in ignored)

    await wait_for(look, what="the cluster to be healthy", timeout_s=timeout_s, report=report)
