"""A snapshot is restored into a cluster without etcd, and success means that it was."""

from __future__ import annotations

import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.talos import Cluster, apply, boot_talos, put_image, wait_for_stage
from tests.support.talos_nodes import Reports, access_to, node_of

from pvelab.talos.etcd_snapshot import make_snapshot
from pvelab.talos.machine import TalosMachine
from stackyard.bootstrap.boot_record import BootRecord, EtcdMark
from stackyard.bootstrap.changes.snapshot import EtcdExistsError, RestoreStep
from stackyard.clients.objects import MemoryObjects


async def prepared(api: LabClient) -> tuple[TalosMachine, RestoreStep]:
    await put_image(api)
    cluster, machine = Cluster(), await boot_talos(api, 100)
    await wait_for_stage(machine, "maintenance")
    await apply(machine, cluster.config())
    await wait_for_stage(machine, "running")
    step = RestoreStep(
        controllers=(node_of(machine),),
        access=access_to(cluster, timeout_s=2.0),
        record=BootRecord(MemoryObjects(), "cluster/home/default", "an id"),
        snapshot=make_snapshot({}),
        timeout_s=10.0,
        settle_s=0.2,
    )
    return machine, step


async def test_old_data_that_shows_late_is_no_restored_snapshot() -> None:
    async with lab_client() as api:
        machine, step = await prepared(api)

        def report(text: str) -> None:
            if text.endswith("to take the snapshot"):
                machine.etcd.bootstrap()

        with pytest.raises(EtcdExistsError, match="was not restored"):
            await step.do(report)
        # An empty etcd is not formed either.
        assert await step.record.read() == EtcdMark(node="node-100", is_formed=True)


async def test_an_etcd_that_starts_again_is_not_replaced() -> None:
    async with lab_client() as api:
        machine, step = await prepared(api)

        def report(text: str) -> None:
            if text == "an etcd that may be there to start":
                machine.etcd.bootstrap()

        with pytest.raises(EtcdExistsError, match="runs again"):
            await step.do(report)
        assert await step.record.read() is None


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_answer_is_asked_for_again(when: str) -> None:
    async with lab_client() as api:
        machine, step = await prepared(api)
        api.running.add_fault("talos-call", method="Bootstrap", when=when, times=1)
        await step.do(Reports())
        await step.prove(Reports())
        assert machine.etcd.is_member
