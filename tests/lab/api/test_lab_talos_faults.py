"""Faults of the lab's Talos machines: in force while they are there, and over when they are removed."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl

import pytest
from grpclib import GRPCError
from grpclib.exceptions import StreamTerminatedError
from tests.support.lab import LabClient, lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    free_network,
    open_kubernetes,
    put_image,
    read_kubeconfig,
    secured,
    start_cluster,
    talos_client,
    wait_for_kubernetes,
    wait_for_stage,
    wait_until,
)

from stackyard.clients.kubernetes import (
    KubernetesClient,
    KubernetesUnreachableError,
    ObjectMissingError,
    ObjectReference,
    Patience,
    parse_kubeconfig,
)
from stackyard.talosapi.messages import pb


async def add_fault(api: LabClient, how: str, vmid: int, **fields: object) -> None:
    body = {"kind": "talos", "name": how, "how": how, "vmid": vmid, **fields}
    reply = await api.raw("POST", "/faults", base="/_lab", json=body)
    assert reply.status == 200, reply.body


async def remove_fault(api: LabClient, how: str) -> None:
    assert (await api.raw("DELETE", f"/faults/{how}", base="/_lab")).status == 200


async def test_a_machine_that_never_boots_or_hangs_in_its_installation_continues_without_the_fault() -> None:
    async with lab_client() as api:
        await put_image(api)
        await add_fault(api, "never-boots", 100)
        await add_fault(api, "install-hangs", 100)
        machine = await boot_talos(api)
        other = await boot_talos(api, 101)
        await wait_for_stage(other, "maintenance")
        assert machine.stage == "booting"
        await remove_fault(api, "never-boots")
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster()
        await apply(machine, cluster.config())
        await apply(other, cluster.config())
        await wait_for_stage(other, "running")
        assert machine.stage == "installing"
        await remove_fault(api, "install-hangs")
        await wait_for_stage(machine, "running")


async def test_a_machine_that_loses_its_disk_is_in_maintenance_mode_again() -> None:
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        await add_fault(api, "disk-lost", 100)
        async with secured(machine, cluster) as client:
            await client.call("Reboot")
        await wait_for_stage(machine, "maintenance")
        assert machine.config is None


async def test_a_slow_etcd_starts_later() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster()
        await apply(machine, cluster.config())
        await wait_for_stage(machine, "running")
        await add_fault(api, "etcd-slow", 100, seconds=1)
        async with secured(machine, cluster) as client:
            await client.call("Bootstrap")
            services = {one.id: one.state for one in (await client.call("ServiceList")).messages[0].services}
        assert services["etcd"] == "Starting"
        await wait_until(machine, lambda: machine.etcd.is_healthy)


async def test_an_expired_certificate_is_shown_until_the_fault_is_removed() -> None:
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        await add_fault(api, "certificate-expired", 100)
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            async with secured(machine, cluster) as client:
                await client.call("Version")
        await remove_fault(api, "certificate-expired")
        async with secured(machine, cluster) as client:
            await client.call("Version")


async def test_an_unreachable_machine_takes_connections_and_answers_nobody() -> None:
    async with lab_client() as api:
        _, machines = await start_cluster(api, control_planes=3)
        last, address = machines[2], machines[2].address
        assert address is not None
        await add_fault(api, "unreachable", 102)
        await wait_until(machines[0], lambda: not last.is_open and not last.etcd.is_running)
        with pytest.raises((TimeoutError, OSError)):
            async with asyncio.timeout(0.3), talos_client(address) as client:
                await client.call("Version")
        view = machines[0].control_plane
        assert view is not None
        await wait_until(machines[0], lambda: view.view.find_node_problem("node-102") is not None)
        await remove_fault(api, "unreachable")
        await wait_until(machines[0], lambda: last.etcd.is_healthy and not last.list_unmet_conditions())


async def test_a_machine_that_is_parted_from_the_others_has_no_quorum() -> None:
    async with lab_client() as api:
        cluster, machines = await start_cluster(api, control_planes=3)
        await add_fault(api, "partition", 102)
        assert not machines[2].etcd.is_healthy
        assert machines[0].etcd.is_healthy
        async with secured(machines[2], cluster) as client:
            with pytest.raises(GRPCError, match="no leader"):
                await client.call("EtcdMemberList")
        async with secured(machines[0], cluster) as client:
            answer = await client.call("Version", nodes=machines[2].address[0] if machines[2].address else "")
            assert "connection refused" in answer.messages[0].metadata.error


async def test_a_snapshot_brings_the_objects_back_into_a_new_etcd() -> None:
    kept, later = ({"name": name, "namespace": "default"} for name in ("kept", "later"))
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        async with await open_kubernetes(machine, cluster) as kubernetes:
            await kubernetes.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept})
            async with secured(machine, cluster) as client:
                snapshot = b"".join([part.bytes async for part in client.stream("EtcdSnapshot")])
            await kubernetes.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": later})
        async with secured(machine, cluster) as client:
            wiped = [pb.ResetPartitionSpec(label="EPHEMERAL", wipe=True)]
            await client.call("Reset", pb.ResetRequest(reboot=True, system_partitions_to_wipe=wiped))
        await wait_until(machine, lambda: not machine.etcd.is_member)
        await wait_for_stage(machine, "running")
        machine.etcd.recover(snapshot)
        async with secured(machine, cluster) as client:
            await client.call("Bootstrap", pb.BootstrapRequest(recover_etcd=True))
        await wait_for_kubernetes([machine])
        async with await open_kubernetes(machine, cluster) as kubernetes:
            await kubernetes.get(ObjectReference("v1", "ConfigMap", "kept", "default"))
            with pytest.raises(ObjectMissingError):
                await kubernetes.get(ObjectReference("v1", "ConfigMap", "later", "default"))


async def test_a_clock_that_is_ahead_forbids_bootstrap_and_makes_certificates_of_the_future() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster()
        await apply(machine, cluster.config())
        await wait_for_stage(machine, "running")
        async with secured(machine, cluster) as client:
            await add_fault(api, "clock-skew", 100, seconds=120)
            with pytest.raises(GRPCError, match="time is not in sync yet"):
                await client.call("Bootstrap")
        assert ("time", "time is not synced") in machine.list_unmet_conditions()
        await remove_fault(api, "clock-skew")
        await add_fault(api, "clock-skew", 100)
        with pytest.raises(ssl.SSLCertVerificationError, match="not yet valid"):
            async with secured(machine, cluster) as client:
                await client.call("Version")
        await remove_fault(api, "clock-skew")
        async with secured(machine, cluster) as client:
            await client.call("Bootstrap")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_call_is_done_or_not_and_has_no_answer(when: str) -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster()
        for name in ("ApplyConfiguration", "Bootstrap"):
            api.running.add_fault("talos-call", method=name, when=when, vmid=100, times=1)
        with pytest.raises(StreamTerminatedError):
            await apply(machine, cluster.config())
        if when == "before":
            assert machine.stage == "maintenance"
            await apply(machine, cluster.config())
        await wait_for_stage(machine, "running")
        with pytest.raises(StreamTerminatedError):
            async with secured(machine, cluster) as client:
                await client.call("Bootstrap")
        assert machine.etcd.is_member == (when == "after")
        async with secured(machine, cluster) as client:
            if when == "after":
                with pytest.raises(GRPCError, match="etcd data directory is not empty"):
                    await client.call("Bootstrap")
            else:
                await client.call("Bootstrap")


async def test_an_api_that_is_away_keeps_its_objects() -> None:
    name = {"name": "kept", "namespace": "default"}
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        async with await open_kubernetes(machine, cluster) as kubernetes:
            await kubernetes.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
            await add_fault(api, "api-away", 100)
            with pytest.raises(KubernetesUnreachableError):
                await kubernetes.get(ObjectReference("v1", "ConfigMap", "kept", "default"))
            assert ("staticPods", "kube-system/kube-apiserver not ready") in machine.list_unmet_conditions()
            await remove_fault(api, "api-away")
            await wait_for_kubernetes([machine])
            await kubernetes.get(ObjectReference("v1", "ConfigMap", "kept", "default"))


async def test_a_taken_address_answers_in_the_place_of_the_cluster_until_it_is_free() -> None:
    shared = f"{free_network()}.250.1"
    async with lab_client() as api:
        taken = api.running.add_fault("address-taken", address=shared)
        network = {"interfaces": [{"interface": "eth0", "vip": {"ip": shared}}]}
        cluster, (machine,) = await start_cluster(api, Cluster(machine={"network": network}))
        access = parse_kubeconfig(await read_kubeconfig(machine, cluster))
        at_shared = dataclasses.replace(access, server=f"https://{shared}:6443")
        with pytest.raises(KubernetesUnreachableError, match="certificate"):
            async with KubernetesClient(at_shared, Patience(answer_s=5.0, away_s=0.0)) as kubernetes:
                await kubernetes.get(ObjectReference("v1", "Namespace", "default"))
        api.running.remove_fault(taken)
        async with KubernetesClient(at_shared, Patience(answer_s=5.0, away_s=10.0)) as kubernetes:
            await kubernetes.get(ObjectReference("v1", "Namespace", "default"))


async def test_an_address_at_which_the_lab_cannot_answer_is_refused() -> None:
    async with lab_client() as api:
        body = {"kind": "address-taken", "address": "192.0.2.1"}
        reply = await api.raw("POST", "/faults", base="/_lab", json=body)
        assert reply.status == 400
        assert b"127.0.0.0/8" in reply.body
