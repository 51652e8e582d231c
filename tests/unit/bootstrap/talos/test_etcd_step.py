"""etcd is formed once in the life of a cluster, by the node that was meant, and members are nodes."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address
from typing import Any

import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    put_image,
    secured,
    start_cluster,
    wait_for_stage,
    wait_until,
)
from tests.support.talos_nodes import Reports, access_to, add_fault, node_of, remove_fault

from pvelab.talos.machine import TalosMachine
from stackyard.bootstrap.boot_record import BootRecord
from stackyard.bootstrap.step import Presence
from stackyard.bootstrap.talos.address import AddressTakenError
from stackyard.bootstrap.talos.etcd import EtcdLostError, EtcdStep
from stackyard.bootstrap.talos.members import EtcdSplitError, RemovedMemberError
from stackyard.clients.objects import ABSENT, MemoryObjects
from stackyard.talosapi.messages import pb


def record() -> BootRecord:
    return BootRecord(MemoryObjects(), "cluster/home/default", "an id")


async def configured(api: LabClient, count: int) -> tuple[Cluster, list[TalosMachine]]:
    """Return control plane machines that run and have no etcd yet."""
    await put_image(api)
    cluster = Cluster()
    machines = [await boot_talos(api, 100 + number) for number in range(count)]
    for machine in machines:
        await wait_for_stage(machine, "maintenance")
        await apply(machine, cluster.config())
    for machine in machines:
        await wait_for_stage(machine, "running")
    return cluster, machines


def step_for(cluster: Cluster, machines: list[TalosMachine], **changes: Any) -> EtcdStep:
    fields: dict[str, Any] = {
        "record": record(),
        "timeout_s": 10.0,
        "settle_s": 0.2,
        "return_s": 0.2,
        **changes,
    }
    return EtcdStep(
        controllers=tuple(node_of(machine) for machine in machines),
        access=access_to(cluster, timeout_s=2.0),
        **fields,
    )


async def run(step: EtcdStep) -> None:
    await step.do(Reports())
    await step.prove(Reports())


async def wipe(machine: TalosMachine, cluster: Cluster) -> None:
    """Empty the disk of a machine, and give it the configuration of its cluster again."""
    async with secured(machine, cluster) as client:
        await client.call("Reset", pb.ResetRequest(reboot=True))
    await wait_for_stage(machine, "maintenance")
    await apply(machine, cluster.config())
    await wait_for_stage(machine, "running")


async def test_etcd_is_formed_by_the_node_that_was_asked_before_whatever_the_order_of_the_file_is() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 2)
        step = step_for(cluster, machines)
        await step.record.note_forming("node-101", expect=ABSENT)
        # The answer to the run before was lost.
        machines[1].etcd.bootstrap()
        await run(step)
        assert len({machine.etcd.uuid for machine in machines}) == 1
        assert (await step.look()).presence is Presence.PRESENT
        mark = await step.record.read()
        assert mark is not None
        assert (mark.node, mark.is_formed) == ("node-101", True)


async def test_nodes_that_were_all_rebuilt_form_no_new_etcd_unless_that_is_said() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        step = step_for(cluster, machines)
        await run(step)
        before = machines[0].etcd.uuid
        await wipe(machines[0], cluster)
        assert (await step.look()).presence is Presence.ABSENT
        with pytest.raises(EtcdLostError, match="node-100 formed etcd before"):
            await step.do(Reports())
        assert not machines[0].etcd.is_member
        again = step_for(cluster, machines, record=step.record, may_form_again=True)
        assert (await again.look()).presence is Presence.ABSENT
        await run(again)
        assert machines[0].etcd.uuid not in ("", before)


async def form_late(step: EtcdStep, machine: TalosMachine) -> None:
    """Let the etcd of a machine start while the step looks, as at a boot with data."""
    reports = Reports()
    doing = asyncio.create_task(step.do(reports))
    while "an etcd that may be there to start" not in reports.texts and not doing.done():
        await asyncio.sleep(0.01)
    machine.etcd.bootstrap()
    await doing


async def test_an_etcd_that_starts_late_is_found_and_none_is_formed_beside_it() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 2)
        await form_late(step_for(cluster, machines, settle_s=5.0), machines[1])
        assert len(api.world.store.items("talos_etcd")) == 1


async def test_an_etcd_of_before_may_take_its_time_to_start_again() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        step = step_for(cluster, machines, return_s=5.0)
        await step.record.note_formed("node-100")
        await form_late(step, machines[0])
        assert machines[0].etcd.is_member


async def test_etcd_is_noted_before_all_control_plane_nodes_have_joined() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 2)
        # Away from the other, it cannot join.
        await add_fault(api, "partition", 101)
        step = step_for(cluster, machines, timeout_s=60.0)
        machines[0].etcd.bootstrap()
        proving = asyncio.create_task(step.prove(Reports()))
        while (mark := await step.record.read()) is None or not mark.is_formed:
            assert not proving.done()
            await asyncio.sleep(0.01)
        proving.cancel()
        assert isinstance((await asyncio.gather(proving, return_exceptions=True))[0], asyncio.CancelledError)


async def test_other_secrets_form_no_etcd_where_there_was_one() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        objects = MemoryObjects()
        await BootRecord(objects, "cluster/home/default", "other").note_formed("node-100")
        step = step_for(cluster, machines, record=BootRecord(objects, "cluster/home/default", "an id"))
        with pytest.raises(EtcdLostError, match="other secrets"):
            await step.look()
        await run(step_for(cluster, machines, record=step.record, may_form_again=True))


async def test_a_node_that_was_asked_and_is_described_no_more_is_not_replaced_by_another() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        step = step_for(cluster, machines)
        await step.record.note_forming("k8s-gone", expect=ABSENT)
        with pytest.raises(EtcdLostError, match="k8s-gone was asked to form etcd before"):
            await step.look()


async def test_a_rebuilt_node_is_no_member_through_the_one_that_had_its_name() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 3)
        step = step_for(cluster, machines)
        await run(step)
        # Away from the others, it cannot join by itself.
        await add_fault(api, "partition", 102)
        await wipe(machines[2], cluster)
        found = await step.look()
        assert found.presence is Presence.ABSENT
        assert found.reason == "node-102 to join etcd"


async def test_a_member_that_no_file_describes_is_named() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 3)
        await run(step_for(cluster, machines))
        fewer = step_for(cluster, machines[:2])
        with pytest.raises(RemovedMemberError, match="node-102"):
            await fewer.look()


async def test_two_etcds_are_an_error_and_not_a_cluster() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 2)
        for machine in machines:
            machine.etcd.bootstrap()
        await wait_until(machines[0], lambda: all(one.etcd.is_healthy for one in machines))
        with pytest.raises(EtcdSplitError, match="node-100 and node-101"):
            await step_for(cluster, machines).look()


async def test_an_address_that_something_has_already_stops_before_etcd_is_formed() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        assert machines[0].address is not None
        taken = IPv4Address(machines[0].address[0]) + 100
        step = step_for(cluster, machines, shared_address=taken)
        with socket.create_server((str(taken), 6443)):
            with pytest.raises(AddressTakenError, match=f"{taken} .port 6443"):
                await step.do(Reports())
            assert not machines[0].etcd.is_member
            assert await step.record.read() is None
        await run(step)


async def test_a_cluster_that_came_up_elsewhere_is_present_without_a_record() -> None:
    async with lab_client() as api:
        cluster, machines = await start_cluster(api)
        step = step_for(cluster, machines)
        await wait_until(machines[0], lambda: machines[0].etcd.is_healthy)
        assert (await step.look()).presence is Presence.PRESENT


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_answer_to_the_bootstrap_that_was_lost_is_asked_for_on_the_same_node(
    when: str,
) -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 2)
        api.running.add_fault("talos-call", method="Bootstrap", when=when, times=1)
        step = step_for(cluster, machines)
        await run(step)
        assert {machine.etcd.uuid for machine in machines} == {machines[0].etcd.uuid}
        assert len(api.world.store.items("talos_etcd")) == 1


async def test_a_node_whose_clock_is_wrong_forms_etcd_once_it_is_right() -> None:
    async with lab_client() as api:
        cluster, machines = await configured(api, 1)
        await add_fault(api, "clock-skew", 100)
        step, reports = step_for(cluster, machines), Reports()
        doing = asyncio.create_task(step.do(reports))
        while not any("time" in text or "valid" in text for text in reports.texts):
            await asyncio.sleep(0.01)
        assert not machines[0].etcd.is_member
        await remove_fault(api, "clock-skew", 100)
        await doing
        await step.prove(reports)
        assert machines[0].etcd.is_member
