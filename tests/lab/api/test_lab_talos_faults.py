"""Faults of the lab's Talos machines: in force while they are there, and over when they are removed."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from grpclib import GRPCError
from tests.support.lab import LabClient, lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    open_kubernetes,
    put_image,
    secured,
    start_cluster,
    talos_client,
    wait_for_kubernetes,
    wait_for_stage,
    wait_until,
)

from stackyard.clients.kubernetes import ObjectMissingError, ObjectReference
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
