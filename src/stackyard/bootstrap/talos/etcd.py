"""etcd is formed exactly once, by one control plane node; the others join it by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import absent, present, unknown
from stackyard.bootstrap.talos.address import require_free
from stackyard.bootstrap.talos.members import ask_etcd, check_members, find_etcd
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError, TalosRefusedError

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from stackyard.bootstrap.boot_record import BootRecord, EtcdMark
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.bootstrap.talos.members import NodeEtcd
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["SETTLE_S", "EtcdLostError", "EtcdStep"]

_BOOTSTRAP = "/machine.MachineService/Bootstrap"
_DONE_BEFORE = "ALREADY_EXISTS"
_NOT_YET = "FAILED_PRECONDITION"
# Between the first answer of a node that boots and its etcd, whose data the answers before do not show.
SETTLE_S = 5.0
# The same where there was an etcd: all nodes of a site may boot at once, and wait for time and network.
_RETURN_S = 60.0


class EtcdLostError(StackyardError):
    """The cluster had an etcd, and no control plane node has it any more."""

    code = "E-ETCD-LOST"
    summary = "The etcd of the cluster is gone"
    default_remedy = (
        "If the nodes were rebuilt, `stackyard cluster restore FILE` brings etcd back from a snapshot; then "
        "run the command again. --new-etcd NAME forms a new one, and everything that Kubernetes had is lost."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdStep:
    """Lets one control plane node form etcd, and waits until all of them are members.

    Two nodes that both form it are two clusters, and Talos does not prevent that. So every control plane node
    is asked first; one that cannot be asked may have formed it, and then nothing is done. Which node is asked
    to form it is written down before: if its answer is lost, no other one is asked.

    Attributes:
        controllers: The control plane nodes; the first one forms etcd.
        access: The API of the nodes.
        record: What outlives the nodes.
        shared_address: The address that etcd gives to one of them, which must be free until then.
        may_form_again: Whether a new etcd is formed where there was one before.
        timeout_s: How long it may take until all are members.
        settle_s: How long no node may have etcd before one is formed.
        return_s: How long an etcd that was there before may take to start again.
    """

    controllers: tuple[ClusterNode, ...]
    access: TalosAccess = field(repr=False)
    record: BootRecord
    shared_address: IPv4Address | None = None
    may_form_again: bool = False
    timeout_s: float = 600.0
    settle_s: float = SETTLE_S
    return_s: float = _RETURN_S
    name: str = "etcd"

    async def look(self) -> Observation:
        """Ask every control plane node for its etcd; see `Step.look`.

        Raises:
            EtcdLostError: The node that was to form it is gone, or the cluster had other secrets.
            EtcdSplitError: There are several.
            RemovedMemberError: A member is none of the nodes.
        """
        found = await ask_etcd(self.controllers, self.access)
        check_members(found)
        if any(one.has_etcd for one in found):
            missing = _list_missing(found)
            return absent(missing) if missing else present()
        unseen = [one.reason for one in found if one.reason]
        if unseen:
            return unknown(unseen[0])
        mark = await self.record.read()
        if self._was_formed(mark):
            return absent("the etcd of before does not run")
        self._choose(mark)
        return absent("etcd is not formed yet")

    def _was_formed(self, mark: EtcdMark | None) -> bool:
        return mark is not None and mark.is_formed and not mark.is_foreign and not self.may_form_again

    def _choose(self, mark: EtcdMark | None) -> ClusterNode:
        """Return the node that forms etcd: the one that was asked before, if one was.

        Raises:
            EtcdLostError: etcd was formed, or may have been by a node that is gone.
        """
        first = self.controllers[0]
        if mark is None or self.may_form_again:
            return first
        if mark.is_foreign:
            raise EtcdLostError(
                f"{mark.node} was asked to form etcd before, for a cluster of this name with other secrets.",
                remedy="If that cluster is still there, restore its talos/talsecret.sops.yaml from git. If "
                "it is gone, --new-etcd NAME forms a new etcd.",
            )
        if mark.is_formed:
            raise EtcdLostError(
                f"{mark.node} formed etcd before, and none of {_names(self.controllers)} has it now."
            )
        meant = [node for node in self.controllers if node.name == mark.node]
        if not meant:
            raise EtcdLostError(
                f"{mark.node} was asked to form etcd before, and nodes.yaml does not have it any more."
            )
        return meant[0]

    async def do(self, report: Report) -> None:
        """Form etcd, unless some node has it; see `Step.do`.

        Raises:
            AddressTakenError: Something else has the address of the Kubernetes API.
            EtcdLostError: There was an etcd before, and it does not come back.
            ConflictError: Another run works on the same cluster.
        """
        mark, expect = await self.record.read_tagged()
        quiet_s = self.return_s if self._was_formed(mark) else self.settle_s
        if await find_etcd(self.controllers, self.access, report, quiet_s=quiet_s, timeout_s=self.timeout_s):
            return
        chosen = self._choose(mark)
        if mark is None or mark.is_formed or mark.is_foreign or mark.node != chosen.name:
            if self.shared_address is not None:
                await require_free(self.shared_address)
            await self.record.note_forming(chosen.name, expect=expect)
        await self._form(chosen, report)

    async def _form(self, node: ClusterNode, report: Report) -> None:
        report(f"{node.name} to form etcd")

        async def form() -> str:
            try:
                async with self.access.open(node) as client:
                    await client.call(_BOOTSTRAP)
            except TalosRefusedError as err:
                if err.status == _DONE_BEFORE:
                    # By this very node: its answer was lost.
                    return ""
                if err.status == _NOT_YET:
                    return err.detail
                raise
            except TalosError as err:
                # Whether it was done is not known. The same node says so when it is asked again.
                return err.detail
            return ""

        await wait_for(form, what=f"{node.name} to form etcd", timeout_s=self.timeout_s, report=report)

    async def prove(self, report: Report) -> None:
        """Wait until all control plane nodes are members; see `Step.prove`."""
        is_noted = False

        async def is_whole() -> str:
            nonlocal is_noted
            found = await ask_etcd(self.controllers, self.access)
            if not is_noted and any(one.has_etcd for one in found):
                # Before the rest joins: nodes that are rebuilt until then must not form another one.
                await self.record.note_formed(self.controllers[0].name)
                is_noted = True
            check_members(found)
            return _list_missing(found)

        await wait_for(is_whole, what="etcd to be whole", timeout_s=self.timeout_s, report=report)


def _list_missing(found: tuple[NodeEtcd, ...]) -> str:
    """Return who is to join yet: the etcd of the node itself counts, not a member of its name."""
    reasons = [
        one.reason or f"{one.node.name} to {'get a vote in' if one.has_etcd else 'join'} etcd"
        for one in found
        if not one.is_voter or one.number not in {row.number for row in one.members}
    ]
    return "; ".join(reasons)


def _names(nodes: tuple[ClusterNode, ...]) -> str:
    return ", ".join(node.name for node in nodes)
