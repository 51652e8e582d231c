"""The etcd of Talos clusters: made by one bootstrap, joined by the other control plane machines.

A document `talos_etcd/<uuid>` has the `members` of one etcd by number: `vmid hostname address`. The disk of a
member has `etcd` in its state: `uuid member running_from`, or `snapshot` where one was uploaded for recovery.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.faults.latency import Work
from pvelab.faults.talos import SLOW_S, find_talos_fault
from pvelab.talos import disks
from pvelab.talos.etcd_snapshot import make_snapshot, read_snapshot
from pvelab.talos.hardware import list_addresses
from pvelab.talos.objects import read_objects, write_objects
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pvelab.talos.machine import TalosMachine

__all__ = ["Etcd"]

_COLLECTION = "talos_etcd"


class Etcd:
    """The etcd of one machine.

    Args:
        machine: The machine.
    """

    def __init__(self, machine: TalosMachine) -> None:
        self._machine = machine
        self._has_left = False
        self._read: tuple[int, Mapping[str, Any]] = (-1, {})

    @property
    def _own(self) -> Mapping[str, Any]:
        revision = self._machine.world.store.revision
        # Everybody asks everybody for it: the disk is read once after each change of the lab.
        if self._read[0] != revision:
            self._read = revision, disks.read_state(self._machine).get("etcd") or {}
        return self._read[1]

    @property
    def uuid(self) -> str:
        """Which etcd its data is of, empty without data."""
        return str(self._own.get("uuid", ""))

    @property
    def is_member(self) -> bool:
        """Whether its data directory holds data."""
        return "uuid" in self._own

    @property
    def is_running(self) -> bool:
        """Whether it has started."""
        now = self._machine.world.clock.now()
        return self.is_member and self._machine.is_open and now >= float(self._own["running_from"])

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, and most members of its cluster do."""
        members = self._members()
        running = sum(1 for one in members.values() if self._is_member_running(one))
        return self.is_running and str(self._own["member"]) in members and running * 2 > len(members)

    def bootstrap(self, *, recover: bool = False) -> None:
        """Make a new etcd with this machine as its only member.

        Raises:
            GRPCError: The machine is no control plane machine, or has been bootstrapped.
        """
        machine = self._machine
        if not machine.is_control_plane:
            raise GRPCError(
                Status.FAILED_PRECONDITION, "bootstrap can only be performed on a control plane node"
            )
        if machine.has_fault("clock-skew"):
            raise GRPCError(Status.FAILED_PRECONDITION, "time is not in sync yet")
        if self.is_member:
            raise GRPCError(Status.ALREADY_EXISTS, "etcd data directory is not empty")
        if recover and "snapshot" not in self._own:
            raise GRPCError(Status.FAILED_PRECONDITION, "etcd snapshot is not uploaded")
        uuid, store = secrets.token_hex(8), machine.world.store
        with store.transaction():
            store.put(_COLLECTION, uuid, {"members": {}, "leader": 0, "term": 1})
            if recover:
                write_objects(store, uuid, self._own["snapshot"])
            self._join(uuid)

    @contextlib.asynccontextmanager
    async def attend(self) -> AsyncIterator[None]:
        """Join the etcd of the cluster when there is one, for as long as the machine runs."""
        if not self._machine.is_control_plane:
            yield
            return
        self._has_left = False
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _follow(self) -> None:
        machine = self._machine
        while True:
            starts_in_s = float(self._own.get("running_from", 0.0)) - machine.world.clock.now()
            if self.is_member and starts_in_s > 0:
                await machine.world.clock.sleep(starts_in_s)
                machine.tell()
                continue
            uuid = None if self.is_member or self._has_left else self._find_other()
            if uuid is not None:
                self._join(uuid)
            else:
                await machine.guests.wait_change()

    def _find_other(self) -> str | None:
        for other in self._machine.list_members():
            if other is not self._machine and other.etcd.is_healthy:
                return other.etcd.uuid
        return None

    def _join(self, uuid: str) -> None:
        machine = self._machine
        world, number = machine.world, secrets.randbits(63)
        addresses = list_addresses(world, machine.guest)
        row = {"vmid": machine.vmid, "hostname": machine.hostname, "address": next(iter(addresses), "")}
        with world.store.transaction():
            with world.store.edit(_COLLECTION, uuid) as document:
                document["members"][str(number)] = row
                document["leader"] = document["leader"] or number
            running_from = world.clock.now() + world.latency.seconds(Work.BOOTSTRAP)
            fault = find_talos_fault(world.store, "etcd-slow", machine.vmid)
            running_from += 0.0 if fault is None else float(fault.get("seconds", SLOW_S))
            own = {"uuid": uuid, "member": number, "running_from": running_from}
            disks.write_state(machine, etcd=own)

    def list_addresses(self) -> frozenset[str]:
        """Return the addresses of the members of its cluster."""
        return frozenset(str(row["address"]) for row in self._members().values())

    def list_members(self) -> list[Any]:
        """Return the members of its cluster as messages.

        Raises:
            GRPCError: It does not run.
        """
        self._require()
        return [
            pb.EtcdMember(
                id=int(number),
                hostname=row["hostname"],
                peer_urls=[f"https://{row['address']}:2380"],
                client_urls=[f"https://{row['address']}:2379"],
            )
            for number, row in self._members().items()
        ]

    def status(self) -> Any:
        """Return its status as a message.

        Raises:
            GRPCError: It does not run.
        """
        document = self._require()
        return pb.EtcdMemberStatus(
            protocol_version="3.6.7",
            storage_version="3.6.0",
            db_size=4_000_000,
            db_size_in_use=2_000_000,
            leader=int(document["leader"]),
            raft_index=int(self._machine.world.store.revision),
            raft_applied_index=int(self._machine.world.store.revision),
            raft_term=int(document["term"]),
            member_id=int(self._own["member"]),
        )

    def leave(self) -> None:
        """Leave its cluster, empty the data directory, and stay away from it until the next boot.

        Raises:
            GRPCError: It does not run.
        """
        self._require()
        self._has_left = True
        with self._machine.world.store.transaction():
            self.remove(int(self._own["member"]))
            disks.write_state(self._machine, etcd=None)

    def remove(self, number: int) -> None:
        """Remove a member from its cluster.

        Raises:
            GRPCError: It does not run, or there is no such member.
        """
        document = self._require()
        members = {key: row for key, row in document["members"].items() if key != str(number)}
        if len(members) == len(document["members"]):
            raise GRPCError(Status.NOT_FOUND, "etcdserver: member not found")
        leader = document["leader"] if document["leader"] != number else int(next(iter(members), "0"))
        self._put({**document, "members": members, "leader": leader, "term": document["term"] + 1})

    def forfeit(self) -> str:
        """Give the leadership to another member; return its name, empty if it is not the leader.

        Raises:
            GRPCError: It does not run.
        """
        document, own = self._require(), int(self._own["member"])
        others = [key for key in document["members"] if key != str(own)]
        if document["leader"] != own or not others:
            return ""
        self._put({**document, "leader": int(others[0]), "term": document["term"] + 1})
        return str(document["members"][others[0]]["hostname"])

    def snapshot(self) -> bytes:
        """Return a snapshot.

        Raises:
            GRPCError: It does not run, or real programs have its objects.
        """
        self._require()
        if self._machine.world.machines.kubernetes is not None:
            text = "the lab takes no snapshots of the etcd behind a real kube-apiserver"
            raise GRPCError(Status.UNIMPLEMENTED, text)
        return make_snapshot(read_objects(self._machine.world.store, self.uuid))

    def recover(self, snapshot: bytes) -> None:
        """Keep a snapshot for a bootstrap that recovers from it.

        Raises:
            GRPCError: It is none.
        """
        found = read_snapshot(snapshot)
        if found is None:
            raise GRPCError(Status.INVALID_ARGUMENT, "snapshot is not valid")
        if self.is_member:
            raise GRPCError(Status.FAILED_PRECONDITION, "etcd data directory is not empty")
        own = {"snapshot": found}
        disks.write_state(self._machine, etcd=own)

    def _members(self) -> Mapping[str, Any]:
        found = self._machine.world.store.get(_COLLECTION, str(self._own.get("uuid", "")))
        members: Mapping[str, Any] = {} if found is None else found["members"]
        return members

    def _is_member_running(self, row: Mapping[str, Any]) -> bool:
        other = self._machine.guests.get(int(row["vmid"]))
        return other is not None and other.etcd.is_running and self._machine.reaches(other)

    def _require(self) -> Mapping[str, Any]:
        if not self._machine.is_control_plane:
            raise GRPCError(Status.UNIMPLEMENTED, "etcd is only available on control plane nodes")
        if not self.is_running:
            raise GRPCError(Status.UNAVAILABLE, "etcd is not running")
        if not self.is_healthy:
            raise GRPCError(Status.UNAVAILABLE, "etcdserver: no leader")
        found = self._machine.world.store.get(_COLLECTION, str(self._own["uuid"]))
        assert found is not None, "an etcd exists as long as a disk names it"  # noqa: S101
        return found

    def _put(self, document: Mapping[str, Any]) -> None:
        store = self._machine.world.store
        with store.transaction():
            store.put(_COLLECTION, str(self._own["uuid"]), document)
        self._machine.tell()
