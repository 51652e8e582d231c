"""The health of nodes is what Talos says of them, and a missing network plugin counts only where it must."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.lab import lab_client
from tests.support.talos import Cluster, network_plugin, open_kubernetes, start_cluster, wait_until
from tests.support.talos_nodes import Reports, access_to, add_fault, node_of, remove_fault

from stackyard.bootstrap.step import Presence
from stackyard.bootstrap.talos.health import HealthStep, explain_service
from stackyard.bootstrap.talos.wait import BootTimeoutError
from stackyard.talosapi.messages import pb

WITHOUT_NETWORK = Cluster(settings={"network": {"cni": {"name": "none"}}})


async def test_nodes_without_a_network_plugin_are_healthy_where_kubernetes_is_not_needed() -> None:
    async with lab_client() as api:
        cluster, machines = await start_cluster(api, WITHOUT_NETWORK, control_planes=2, workers=1)
        nodes = tuple(node_of(machine, is_controller=number < 2) for number, machine in enumerate(machines))
        access = access_to(cluster)
        await wait_until(machines[0], lambda: all(len(one.list_unmet_conditions()) == 1 for one in machines))
        found = await HealthStep(nodes, access, needs_kubernetes=False).look()
        assert found.presence is Presence.PRESENT, found.reason
        strict = HealthStep(nodes, access, needs_kubernetes=True)
        found = await strict.look()
        assert found.presence is Presence.ABSENT
        assert "nodeReady" in found.reason
        assert all(node.name in found.reason for node in nodes)
        reports = Reports()
        proving = asyncio.create_task(strict.prove(reports))
        async with await open_kubernetes(machines[0], cluster) as kubernetes:
            await kubernetes.apply(network_plugin())
        await proving
        assert (await strict.look()).presence is Presence.PRESENT


async def test_a_node_that_does_not_answer_and_an_etcd_without_a_leader_are_named() -> None:
    async with lab_client() as api:
        cluster, machines = await start_cluster(api, control_planes=3)
        nodes = tuple(node_of(machine) for machine in machines)
        step = HealthStep(nodes, access_to(cluster, timeout_s=1.0), needs_kubernetes=False, timeout_s=3.0)
        await add_fault(api, "partition", 101)
        found = await step.look()
        assert "node-101: services: etcd not healthy" in found.reason
        assert "no leader" in found.reason
        await remove_fault(api, "partition", 101)
        await add_fault(api, "unreachable", 102)
        await wait_until(machines[0], lambda: not machines[2].is_open)
        with pytest.raises(BootTimeoutError) as failed:
            await step.prove(Reports())
        assert f"node-102: {nodes[2].address}" in failed.value.detail


def test_the_last_event_of_a_service_counts_and_one_without_events_is_not_well() -> None:
    def service(state: str, events: tuple[str, ...], **health: object) -> object:
        rows = [pb.ServiceEvent(state=one) for one in events]
        return pb.ServiceInfo(
            id="kubelet",
            state=state,
            events=pb.ServiceEvents(events=rows),
            health=pb.ServiceHealth(**health),
        )

    assert explain_service(service("Starting", ("Waiting", "Running"), healthy=True)) == ""
    assert explain_service(service("Running", ("Running", "Failed"), healthy=True)) == "kubelet: Failed"
    assert "did not start" in explain_service(service("Running", (), healthy=True))
    sick = explain_service(service("Running", ("Running",), last_message="connection refused"))
    assert sick == "kubelet: Running, connection refused"
    assert explain_service(service("Running", ("Running",), unknown=True)) == ""
