"""What outlives every node of a cluster: which node formed its etcd; and that one run at a time works on it.

A new etcd is a new, empty cluster. Nodes that were all rebuilt look as if there never was one. So it is
written down before etcd is formed, with the node that is to form it: if the answer is lost, that node is
asked again and no other; and once etcd was seen, none is formed again unless a person says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import getpass
import hashlib
import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import BusyError, InvalidInputError
from stackyard.base.run_stop import stop_run
from stackyard.clients.objects import ABSENT, LeaseWatch, StoreError, acquire, read_lease, watch
from stackyard.clients.objects.base import StoreBusyError
from stackyard.clients.objects.heartbeat import keep_alive
from stackyard.clients.objects.holders import describe_process
from stackyard.state import layout
from stackyard.state.runs import PROMISE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.objects import Expect, Lease, Objects

__all__ = ["BootRecord", "ClusterBusyError", "EtcdMark", "RecordDamagedError", "hold_cluster"]

# Between two looks at a lease whose holder says nothing.
_LOOK_EVERY_S = 1.0
_FORMING, _FORMED = "forming", "formed"


class ClusterBusyError(BusyError):
    """Another run works on the same cluster."""

    code = "E-CLUSTER-BUSY"
    summary = "Another run works on this cluster"
    default_remedy = "Wait for the other run to end, then run the command again."


class RecordDamagedError(InvalidInputError):
    """What says whether etcd was formed cannot be read."""

    code = "E-ETCD-RECORD"
    summary = "The record of a cluster cannot be read"
    default_remedy = (
        "`stackyard store show` names the object. Remove it only if no node of the cluster has etcd, and "
        "none had it: a new etcd is a new, empty cluster."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMark:
    """What is known of the etcd of a cluster.

    Attributes:
        node: The node that formed it, or is to form it.
        is_formed: Whether it was seen, or is in a snapshot; before that, only the wish is known.
        is_foreign: Whether that was with other secrets: a former cluster of this name, or these are wrong.
    """

    node: str
    is_formed: bool
    is_foreign: bool = False


class BootRecord:
    """The record of one cluster in the store.

    Args:
        objects: The store.
        state: The name of the cluster's state.
        cluster_id: What Talos knows the cluster by; other secrets are another cluster. Only its hash is kept.
    """

    def __init__(self, objects: Objects, state: str, cluster_id: str) -> None:
        self._objects = objects
        self.key = layout.cluster_etcd(state)
        self._identity = hashlib.sha256(cluster_id.encode()).hexdigest()

    async def read(self) -> EtcdMark | None:
        """Return what is known of the etcd of this cluster; None if none was formed from here.

        Raises:
            RecordDamagedError: The record is something else.
            StoreError: The store cannot be read.
        """
        mark, _ = await self.read_tagged()
        return mark

    async def read_tagged(self) -> tuple[EtcdMark | None, Expect]:
        """Return what `read` does, and what a write that was decided by it expects.

        Raises:
            RecordDamagedError: The record is something else.
            StoreError: The store cannot be read.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> tuple[EtcdMark | None, Expect]:
        stored = self._objects.get(self.key)
        if stored is None:
            return None, ABSENT
        try:
            fields = parse_json(stored.data, SMALL)
            identity, node, state = (str(fields[name]) for name in ("cluster", "node", "state"))
        except (JsonError, TypeError, KeyError) as err:
            raise RecordDamagedError(f"{self.key} is not the record of a cluster.") from err
        is_foreign = identity != self._identity
        return EtcdMark(node=node, is_formed=state == _FORMED, is_foreign=is_foreign), stored.tag

    async def note_forming(self, node: str, *, expect: Expect) -> None:
        """Write down that a node is to form etcd, before it is asked.

        Args:
            node: The node.
            expect: What `read_tagged` gave when the node was chosen.

        Raises:
            ConflictError: Another run wrote in between.
            StoreError: It cannot be stored; no node may be asked then.
        """
        await asyncio.to_thread(self._write, node, _FORMING, expect)

    async def note_formed(self, node: str) -> None:
        """Write down that etcd was seen, unless that is known.

        Raises:
            ConflictError: Another run wrote in between.
            StoreError: It cannot be stored.
        """
        mark, expect = await self.read_tagged()
        if mark is None or mark.is_foreign:
            await asyncio.to_thread(self._write, node, _FORMED, expect)
        elif not mark.is_formed:
            await asyncio.to_thread(self._write, mark.node, _FORMED, expect)

    async def forget(self) -> None:
        """Forget the etcd of this cluster: it was destroyed as a whole, by name.

        Raises:
            StoreError: It cannot be written.
        """
        await asyncio.to_thread(self._objects.delete, self.key)

    def _write(self, node: str, state: str, expect: Expect) -> None:
        fields = {"cluster": self._identity, "node": node, "state": state, "at": int(time.time())}
        self._objects.put(self.key, orjson.dumps(fields), expect=expect)


@contextlib.asynccontextmanager
async def hold_cluster(
    objects: Objects,
    state: str,
    *,
    doing: str,
    wait_s: float = 0.0,
    emit: events.Emit = events.ignore,
) -> AsyncIterator[None]:
    """Let no other run work on a cluster for the length of the block.

    A holder that was killed is noticed: at once on the same machine, else after a silence.

    Args:
        objects: The store.
        state: The name of the cluster's state.
        doing: What is done with it, for other runs.
        wait_s: How long to wait for another run.
        emit: Told for whom is waited.

    Raises:
        ClusterBusyError: Another run works on it for longer than that.
        StoreError: The store cannot be used.
    """
    lease = await _acquire(objects, state, doing, wait_s, emit)
    try:
        async with keep_alive(lease, functools.partial(stop_run, emit=emit)):
            yield
    finally:
        # One that cannot be given back is taken over once it was silent for long enough.
        with contextlib.suppress(StoreError, StoreBusyError):
            await asyncio.to_thread(lease.release)


async def _acquire(objects: Objects, state: str, doing: str, wait_s: float, emit: events.Emit) -> Lease:
    key, seen = layout.cluster_lock(state), LeaseWatch()
    facts = {"doing": doing, **describe_process()}
    owner = f"{_user()}@{socket.gethostname()} pid {os.getpid()}"
    until, is_told = time.monotonic() + wait_s, False
    take = functools.partial(acquire, objects, key, owner=owner, promise_s=PROMISE_S, facts=facts, watch=seen)
    with watch(objects, key) as changes:
        while True:
            lease = await asyncio.to_thread(take)
            if lease is not None:
                return lease
            known = await asyncio.to_thread(read_lease, objects, key)
            holder = "another process" if known is None else f"{known.owner} ({known.facts.get('doing')})"
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise ClusterBusyError(f"{state} is held by {holder}.")
            if not is_told:
                emit(events.StepWaiting(step=f"lock of {state}", waiting_for=f"{holder} to end"))
                is_told = True
            await asyncio.to_thread(changes.wait, min(left_s, _LOOK_EVERY_S))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a number without a name.
        return str(os.getuid())
