"""What outlives the nodes of a cluster: one run at a time, and the memory of its etcd."""

from __future__ import annotations

import asyncio

import pytest

from stackyard.base import events
from stackyard.bootstrap.boot_record import (
    BootRecord,
    ClusterBusyError,
    EtcdMark,
    RecordDamagedError,
    hold_cluster,
)
from stackyard.clients.objects import ABSENT, ANYTHING, ConflictError, MemoryObjects

STATE = "cluster/home/default"


async def test_what_is_remembered_is_of_one_cluster_and_shows_no_secret() -> None:
    objects = MemoryObjects()
    record = BootRecord(objects, STATE, "the id of a cluster")
    assert await record.read() is None
    await record.note_forming("k8s-1", expect=ABSENT)
    mark = await record.read()
    assert mark is not None
    assert (mark.node, mark.is_formed) == ("k8s-1", False)
    await record.note_formed("k8s-2")
    mark = await record.read()
    assert mark is not None
    assert (mark.node, mark.is_formed) == ("k8s-1", True)
    stored = objects.get(record.key)
    assert stored is not None
    assert b"the id of a cluster" not in stored.data
    # The same name with other secrets is another cluster.
    other = BootRecord(objects, STATE, "another id")
    mark, tag = await other.read_tagged()
    assert mark is not None
    assert mark.is_foreign
    await other.note_forming("k8s-3", expect=tag)
    mark = await record.read()
    assert mark is not None
    assert mark.is_foreign
    await record.note_formed("k8s-4")
    assert await record.read() == EtcdMark(node="k8s-4", is_formed=True)


async def test_a_decision_by_a_record_that_changed_since_is_not_written() -> None:
    record = BootRecord(MemoryObjects(), STATE, "id")
    _, tag = await record.read_tagged()
    await record.note_formed("k8s-1")
    with pytest.raises(ConflictError):
        await record.note_forming("k8s-2", expect=tag)
    assert await record.read() == EtcdMark(node="k8s-1", is_formed=True)


async def test_a_record_that_is_something_else_is_an_error() -> None:
    objects = MemoryObjects()
    record = BootRecord(objects, STATE, "id")
    for data in (b"", b"[]", b"{}", b"not json"):
        objects.put(record.key, data, expect=ANYTHING)
        with pytest.raises(RecordDamagedError):
            await record.read()


async def test_two_runs_do_not_work_on_one_cluster_and_the_second_waits_for_the_first() -> None:
    objects, seen, order = MemoryObjects(), list[events.Event](), list[str]()

    async def second() -> None:
        async with hold_cluster(objects, STATE, doing="cluster up", wait_s=20, emit=seen.append):
            order.append("second")

    async with hold_cluster(objects, STATE, doing="cluster up"):
        with pytest.raises(ClusterBusyError, match="cluster up"):
            async with hold_cluster(objects, STATE, doing="cluster up"):
                pass
        async with hold_cluster(objects, "cluster/other/default", doing="cluster up"):
            pass
        waiting = asyncio.create_task(second())
        while not seen:
            await asyncio.sleep(0)
        order.append("first")
    await waiting
    assert order == ["first", "second"]
    assert isinstance(seen[0], events.StepWaiting)
