"""Snapshots of etcd: taken, checked, and restored into a cluster that has no etcd."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.bootstrap.step import absent, unknown
from stackyard.bootstrap.talos.etcd import SETTLE_S
from stackyard.bootstrap.talos.members import ask_etcd, find_etcd
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError, TalosRefusedError
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.bootstrap.boot_record import BootRecord
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["EtcdExistsError", "RestoreStep", "SnapshotDamagedError", "check_snapshot", "take_snapshot"]

_SNAPSHOT = "/machine.MachineService/EtcdSnapshot"
_RECOVER = "/machine.MachineService/EtcdRecover"
_BOOTSTRAP = "/machine.MachineService/Bootstrap"
_DONE_BEFORE, _NOT_YET = "ALREADY_EXISTS", "FAILED_PRECONDITION"
_CHUNK = 1024 * 1024
# etcd adds the SHA-256 of the database, whose pages are whole sectors; bbolt begins with a meta page.
_DIGEST, _SECTOR = 32, 512
_MAGIC_AT, _MAGIC = 16, 0xED0CDAED


class SnapshotDamagedError(InvalidInputError):
    """A file is no whole snapshot of etcd."""

    code = "E-CLUSTER-SNAPSHOT"
    summary = "The file is no whole snapshot of etcd"
    default_remedy = (
        "Use another snapshot: one that `stackyard cluster snapshot` or `talosctl etcd snapshot` made."
    )


class EtcdExistsError(StackyardError):
    """A snapshot is to be restored, and the cluster has an etcd."""

    code = "E-CLUSTER-ETCD-EXISTS"
    summary = "The cluster has an etcd"
    default_remedy = (
        "If an earlier run restored it, go on with `stackyard cluster up`. To give up what the cluster has, "
        "destroy it first: `stackyard cluster destroy`."
    )


def check_snapshot(data: bytes, name: str) -> None:
    """Refuse what is no whole snapshot.

    Raises:
        SnapshotDamagedError: It is none, or cut off.
    """
    content, digest = data[:-_DIGEST], data[-_DIGEST:]
    if len(data) % _SECTOR != _DIGEST or hashlib.sha256(content).digest() != digest:
        raise SnapshotDamagedError(f"{name} does not end with the checksum of its content.")
    if not content or struct.unpack_from("<I", content, _MAGIC_AT)[0] != _MAGIC:
        raise SnapshotDamagedError(f"{name} holds no database of etcd.")


async def take_snapshot(
    controllers: tuple[ClusterNode, ...], access: TalosAccess
) -> tuple[ClusterNode, bytes]:
    """Return a snapshot, and the control plane node that gave it; the first one that can.

    Raises:
        TalosError: None of them gives one; the reason is that of the last.
        SnapshotDamagedError: What came is not whole.
    """
    for number, node in enumerate(controllers, 1):
        try:
            async with access.open(node) as client:
                data = b"".join([part.bytes async for part in client.stream(_SNAPSHOT)])
        except TalosError:
            if number == len(controllers):
                raise
            continue
        check_snapshot(data, f"The snapshot of {node.name}")
        return node, data
    raise ValueError("a cluster without control plane nodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreStep:
    """Lets one control plane node form etcd from a snapshot, and waits until all of them are members.

    Attributes:
        controllers: The control plane nodes; the one that formed etcd before gets the snapshot,
            else the first one.
        access: The API of the nodes.
        record: What outlives the nodes.
        snapshot: A snapshot that was checked.
        timeout_s: How long it may take until all are members.
        settle_s: How long no node may have etcd before the snapshot is sent.
    """

    controllers: tuple[ClusterNode, ...]
    access: TalosAccess = field(repr=False)
    record: BootRecord
    snapshot: bytes = field(repr=False)
    timeout_s: float = 600.0
    settle_s: float = SETTLE_S
    name: str = "etcd"

    async def look(self) -> Observation:
        """Ask every control plane node whether it has etcd; see `Step.look`.

        Raises:
            EtcdExistsError: One of them has.
        """
        found = await ask_etcd(self.controllers, self.access)
        holders = [one.node.name for one in found if one.has_etcd]
        if holders:
            raise EtcdExistsError(f"etcd runs on {', '.join(holders)}. Nothing was restored.")
        unseen = [one.reason for one in found if one.reason]
        # One that cannot be asked may have an etcd: two of them are two clusters.
        return unknown(unseen[0]) if unseen else absent("etcd is not formed yet")

    async def do(self, report: Report) -> None:
        """Send the snapshot, and form etcd from it; see `Step.do`.

        Raises:
            EtcdExistsError: A node has etcd, or data of one.
        """
        waits = {"quiet_s": self.settle_s, "timeout_s": self.timeout_s}
        if await find_etcd(self.controllers, self.access, report, **waits):
            raise EtcdExistsError("etcd runs again. Nothing was restored.")
        mark = await self.record.read()
        # A node that was asked before may have formed etcd: it says so, and no other one would.
        node = next((one for one in self.controllers if mark and one.name == mark.node), self.controllers[0])
        # There was an etcd, so that an empty one must not be formed if this run ends here.
        await self.record.note_formed(node.name)
        await self._form(node, report)

    async def _form(self, node: ClusterNode, report: Report) -> None:
        report(f"{node.name} to take the snapshot")
        is_asked = False

        async def form() -> str:
            nonlocal is_asked
            was_asked = is_asked
            try:
                async with self.access.open(node) as client:
                    if not was_asked:
                        await client.upload(_RECOVER, self._parts())
                    is_asked = True
                    await client.call(_BOOTSTRAP, pb.BootstrapRequest(recover_etcd=True))
            except TalosRefusedError as err:
                is_asked = False
                return await self._judge(err, node, was_asked=was_asked)
            except TalosError as err:
                # Whether it was done is not known. The same node says so when it is asked again.
                return err.detail
            return ""

        await wait_for(form, what=f"{node.name} to form etcd", timeout_s=self.timeout_s, report=report)

    async def _judge(self, err: TalosRefusedError, node: ClusterNode, *, was_asked: bool) -> str:
        """Return what to wait for after a refusal; nothing if the snapshot is restored already.

        Raises:
            EtcdExistsError: The node has an etcd that is not from the snapshot.
            TalosRefusedError: It will not do it.
        """
        if err.status == _DONE_BEFORE and was_asked:
            # By this run: its answer was lost.
            return ""
        if err.status not in (_DONE_BEFORE, _NOT_YET):
            raise err
        found = await ask_etcd((node,), self.access)
        if err.status == _DONE_BEFORE or any(one.has_etcd for one in found):
            raise EtcdExistsError(f"{node.name} has data of an etcd. The snapshot was not restored.") from err
        return err.detail

    async def _parts(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.snapshot), _CHUNK):
            yield self.snapshot[start : start + _CHUNK]

    async def prove(self, report: Report) -> None:
        """Wait until all control plane nodes are members; see `Step.prove`."""

        async def is_whole() -> str:
            found = await ask_etcd(self.controllers, self.access)
            return "; ".join(
                one.reason or f"{one.node.name} to join etcd" for one in found if not one.is_voter
            )

        await wait_for(is_whole, what="etcd to be whole", timeout_s=self.timeout_s, report=report)
        await self.record.note_formed(self.controllers[0].name)
