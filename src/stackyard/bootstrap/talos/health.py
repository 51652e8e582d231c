"""Nodes are healthy: Talos runs, its services do, etcd has a leader, and Kubernetes takes the node."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import absent, present
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["HealthStep", "list_node_problems"]

_SERVICES = "/machine.MachineService/ServiceList"
_ETCD = "/machine.MachineService/EtcdStatus"
_WELL = frozenset(("Running", "Finished", "Skipped"))
# Talos takes a node for ready only once Kubernetes does, and that needs a network plugin.
_NEEDS_NETWORK = "nodeReady"


@dataclass(frozen=True, slots=True)
class HealthStep:
    """Waits until nodes are healthy. It changes nothing.

    Attributes:
        nodes: The nodes.
        access: The API of the nodes.
        needs_kubernetes: Whether Kubernetes must take each node for ready, too. Without a network plugin it
            never does.
        timeout_s: How long it may take.
        name: What the step is called.
    """

    nodes: tuple[ClusterNode, ...]
    access: TalosAccess = field(repr=False)
    needs_kubernetes: bool = field(kw_only=True)
    timeout_s: float = field(default=600.0, kw_only=True)
    name: str = field(default="health", kw_only=True)

    async def look(self) -> Observation:
        """Ask every node; see `Step.look`."""
        reason = await self._ask()
        return absent(reason) if reason else present()

    async def _ask(self) -> str:
        found = await asyncio.gather(
            *(
                list_node_problems(node, self.access, needs_kubernetes=self.needs_kubernetes)
                for node in self.nodes
            )
        )
        return "; ".join(
            f"{node.name}: {', '.join(problems)}"
            for node, problems in zip(self.nodes, found, strict=True)
            if problems
        )

    async def do(self, report: Report) -> None:
        """Do nothing but say so: nodes get healthy by themselves; see `Step.do`."""
        report("the nodes to be healthy")

    async def prove(self, report: Report) -> None:
        """Wait until all are healthy; see `Step.prove`."""
        await wait_for(self._ask, what="healthy nodes", timeout_s=self.timeout_s, report=report)


async def list_node_problems(
    node: ClusterNode, access: TalosAccess, *, needs_kubernetes: bool
) -> tuple[str, ...]:
    """Return why a node is not healthy; nothing if it is.

    Args:
        node: The node.
        access: The API of the nodes.
        needs_kubernetes: Whether Kubernetes must take the node for ready.
    """
    try:
        async with access.open(node) as client:
            found = [*await _list_unmet(client), *await _list_services(client)]
            if node.is_controller:
                found += await _list_etcd(client)
    except StackyardError as err:
        return (err.detail,)
    ignored = () if needs_kubernetes else (_NEEDS_NETWORK,)
    return tuple(text for name, text in found if name not in ignored)


async def _list_unmet(client: TalosClient) -> list[tuple[str, str]]:
    """Return what the node itself says that it still lacks."""
    said = await client.read_resource("MachineStatuses.runtime.talos.dev", "runtime", "machine")
    stage = said.get("stage") if isinstance(said, Mapping) else None
    if stage != "running":
        return [("stage", f"its stage is {stage or 'unknown'}")]
    status = said.get("status")
    status = status if isinstance(status, Mapping) else {}
    unmet = [one for one in status.get("unmetConditions") or () if isinstance(one, Mapping)]
    if not unmet and not status.get("ready"):
        return [("ready", "it is not ready, and does not say why")]
    return [(str(one.get("name")), f"{one.get('name')}: {one.get('reason')}") for one in unmet]


async def _list_services(client: TalosClient) -> list[tuple[str, str]]:
    answer = await client.call(_SERVICES)
    services = [one for message in answer.messages for one in message.services]
    return [(one.id, text) for one in services if (text := explain_service(one))]


def explain_service(service: Any) -> str:
    """Return why a service of Talos is not well; empty if it is.

    Its last event says what it does now: `state` may be older.
    """
    events = service.events.events
    state = events[-1].state if events else "it did not start yet"
    if state in _WELL and (state != "Running" or service.health.healthy or service.health.unknown):
        return ""
    message = service.health.last_message
    return f"{service.id}: {state}" + (f", {message}" if message else "")


async def _list_etcd(client: TalosClient) -> list[tuple[str, str]]:
    try:
        answer = await client.call(_ETCD)
    except TalosError as err:
        # The node answers, and its etcd does not: what the node says of itself is worth to be shown, too.
        return [("etcd", err.detail)]
    return [("etcd", text) for message in answer.messages for text in _explain_member(message.member_status)]


def _explain_member(status: Any) -> Iterable[str]:
    if status.is_learner:
        yield "etcd: it still learns, and has no vote"
    elif not status.leader:
        yield "etcd: it has no leader"
    yield from (f"etcd: {text}" for text in status.errors)
