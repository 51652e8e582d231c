"""etcd is formed exactly once, by the first control plane node; the others join it by themselves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.bootstrap.step import absent, present, unknown
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError, TalosRefusedError

if TYPE_CHECKING:
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["EtcdStep"]

_BOOTSTRAP = "/machine.MachineService/Bootstrap"
_SERVICES = "/machine.MachineService/ServiceList"
_MEMBERS = "/machine.MachineService/EtcdMemberList"
_DONE_BEFORE = "ALREADY_EXISTS"
_NOT_YET = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdStep:
    """Lets the first control plane node form etcd, and waits until all of them are members.

    Two nodes that both form it are two clusters, and Talos does not prevent that. So every control plane node
    is asked first; one that cannot be asked may have formed it, and then nothing is done.

    Attributes:
        controllers: The control plane nodes; the first one forms etcd.
        access: The API of the nodes.
        timeout_s: How long it may take until all are members.
    """

    controllers: tuple[ClusterNode, ...]
    access: TalosAccess = field(repr=False)
    timeout_s: float = 600.0
    name: str = "etcd"

    async def look(self) -> Observation:
        """Ask every control plane node for its members; see `Step.look`."""
        answers = await asyncio.gather(*(self._list_members(node) for node in self.controllers))
        formed = [members for members, _ in answers if members]
        unseen = [reason for members, reason in answers if members is None]
        if formed:
            missing = self._list_missing(formed)
            return absent(missing) if missing else present()
        if unseen:
            return unknown(unseen[0])
        return absent("etcd is not formed yet")

    async def _list_members(self, node: ClusterNode) -> tuple[frozenset[str] | None, str]:
        """Return the names of the members that a node knows: none where it has no etcd; None if unseen."""
        try:
            async with self.access.open(node) as client:
                services = await client.call(_SERVICES)
                if not any(_runs_etcd(one) for message in services.messages for one in message.services):
                    return frozenset(), ""
                answer = await client.call(_MEMBERS)
        except TalosError as err:
            return None, err.detail
        return frozenset(member.hostname for message in answer.messages for member in message.members), ""

    def _list_missing(self, formed: list[frozenset[str]]) -> str:
        members = frozenset[str]().union(*formed)
        missing = [node.name for node in self.controllers if node.name not in members]
        return f"{', '.join(missing)} to join etcd" if missing else ""

    async def do(self, report: Report) -> None:
        """Form etcd, unless some node has it; see `Step.do`."""
        answers = await asyncio.gather(*(self._list_members(node) for node in self.controllers))
        if any(members for members, _ in answers):
            return
        first = self.controllers[0]
        report(f"{first.name} to form etcd")

        async def form() -> str:
            try:
                async with self.access.open(first) as client:
                    await client.call(_BOOTSTRAP)
            except TalosRefusedError as err:
                if err.status == _DONE_BEFORE:
                    return ""
                if err.status == _NOT_YET:
                    return err.detail
                raise
            return ""

        await wait_for(form, what=f"{first.name} to form etcd", timeout_s=self.timeout_s, report=report)

    async def prove(self, report: Report) -> None:
        """Wait until all control plane nodes are members; see `Step.prove`."""

        async def is_whole() -> str:
            return (await self.look()).reason

        await wait_for(is_whole, what="etcd to be whole", timeout_s=self.timeout_s, report=report)


def _runs_etcd(service: Any) -> bool:
    """Return whether a service is etcd, and runs: before it is formed, it waits in another state."""
    return bool(service.id == "etcd" and service.state == "Running")
