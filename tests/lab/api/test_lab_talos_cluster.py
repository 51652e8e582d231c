"""Talos machines of the lab with a configuration: certificates, roles, routing, etcd, and their ends."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any

import pytest
import yaml
from grpclib import GRPCError, Status
from grpclib.exceptions import StreamTerminatedError
from tests.support.lab import LabClient, lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    put_image,
    secured,
    talos_client,
    wait_for_stage,
    wait_until,
)

from pvelab.talos.machine import TalosMachine
from stackyard.talosapi.messages import pb


async def start(api: LabClient, cluster: Cluster, **kinds: str) -> list[TalosMachine]:
    """Start machines by their names with a configuration of a kind each; return them when they run."""
    await put_image(api)
    machines = []
    for number, kind in enumerate(kinds.values()):
        machine = await boot_talos(api, 100 + number)
        await wait_for_stage(machine, "maintenance")
        await apply(machine, cluster.config(kind))
        machines.append(machine)
    for machine in machines:
        await wait_for_stage(machine, "running")
    return machines


def address_of(machine: TalosMachine) -> str:
    assert machine.address is not None
    return machine.address[0]


async def refused(client: Any, name: str, request: Any = None, **metadata: str) -> tuple[Status, str]:
    with pytest.raises(GRPCError) as caught:
        await client.call(name, request, **metadata)
    return caught.value.status, str(caught.value.message)


async def test_a_configured_machine_wants_a_certificate_of_its_own_authority() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        assert machine.address is not None
        async with secured(machine, cluster) as client:
            version = (await client.call("Version")).messages[0]
            assert version.version.tag == "v1.12.1"
            assert not version.HasField("metadata")
        for stranger in (None, Cluster().client()):
            with pytest.raises((GRPCError, StreamTerminatedError, OSError)):
                async with talos_client(machine.address, client=stranger) as client:
                    await client.call("Disks")


async def test_a_role_that_may_not_is_refused() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        async with secured(machine, cluster, "os:reader") as client:
            assert (await client.call("ServiceList")).messages[0].services
            assert await refused(client, "Bootstrap") == (Status.PERMISSION_DENIED, "not authorized")
            request = pb.ListRequest(namespace="config", type="MachineConfigs.config.talos.dev")
            assert await refused(client, "List", request) == (Status.PERMISSION_DENIED, "not authorized")
        async with secured(machine, cluster) as client:
            (found, *_) = await client.list("MachineConfigs.config.talos.dev", "config")
            assert yaml.safe_load(found.spec.yaml_spec) == cluster.config().decode()


async def test_a_cluster_is_bootstrapped_once_and_joined_by_the_others() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        one, other, worker = await start(api, cluster, a="controlplane", b="controlplane", c="worker")
        async with secured(one, cluster) as client:
            services = {s.id: s.state for s in (await client.call("ServiceList")).messages[0].services}
            assert services["etcd"] == "Preparing"
            assert await refused(client, "EtcdMemberList") == (Status.UNAVAILABLE, "etcd is not running")
            await client.call("Bootstrap")
            assert await refused(client, "Bootstrap") == (
                Status.ALREADY_EXISTS,
                "etcd data directory is not empty",
            )
            await wait_until(one, lambda: one.etcd.is_healthy and other.etcd.is_healthy)
            assert len((await client.call("EtcdMemberList")).messages[0].members) == 2
            services = {s.id: s for s in (await client.call("ServiceList")).messages[0].services}
            assert services["etcd"].events.events[-1].state == "Running"
            assert services["etcd"].health.healthy
            status = (await client.call("EtcdStatus")).messages[0].member_status
            assert status.leader == status.member_id
        async with secured(worker, cluster) as client:
            text = "bootstrap can only be performed on a control plane node"
            assert await refused(client, "Bootstrap") == (Status.FAILED_PRECONDITION, text)
            text = "kubeconfig is only available on control plane nodes"
            assert await refused(client, "Kubeconfig") == (Status.UNIMPLEMENTED, text)
        await wait_until(one, lambda: not other.list_unmet_conditions())


async def test_calls_are_passed_on_to_the_machines_that_they_name() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        one, worker = await start(api, cluster, a="controlplane", c="worker")
        target = address_of(worker)
        async with secured(one, cluster) as client:
            answer = await client.call("Version", nodes=target)
            assert answer.messages[0].metadata.hostname == target
            answer = await client.call("Version", nodes="10.9.9.9")
            assert "connection refused" in answer.messages[0].metadata.error
            assert answer.messages[0].metadata.status.code == Status.UNAVAILABLE.value
            assert not (await client.call("Version", node=target)).messages[0].HasField("metadata")
            text = "one-2-many proxying is not supported for COSI methods"
            request = pb.ListRequest(namespace="runtime", type="Disks.block.talos.dev")
            assert await refused(client, "List", request, nodes=target) == (Status.INVALID_ARGUMENT, text)
        async with secured(worker, cluster) as client:
            text = "no request forwarding"
            expected = (Status.PERMISSION_DENIED, text)
            assert await refused(client, "Version", node=address_of(one)) == expected
            await client.call("Version", node=target)


async def test_the_kubeconfig_is_a_tar_that_never_ends() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        async with secured(machine, cluster) as client:
            packed = b"".join([part.bytes async for part in client.stream("Kubeconfig")])
        content = gzip.decompress(packed)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive, pytest.raises(tarfile.ReadError):
            archive.getnames()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = archive.next()
            assert member is not None
            stream = archive.extractfile(member)
            assert stream is not None
            document = yaml.safe_load(stream.read())
        assert document["current-context"] == "admin@demo"
        assert document["users"][0]["user"]["client-key-data"]


async def test_a_reset_leaves_etcd_and_returns_to_maintenance_mode() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        one, other = await start(api, cluster, a="controlplane", b="controlplane")
        async with secured(one, cluster) as client:
            await client.call("Bootstrap")
            await wait_until(one, lambda: one.etcd.is_healthy and other.etcd.is_healthy)
            assert len((await client.call("EtcdMemberList")).messages[0].members) == 2
            labels = [pb.ResetPartitionSpec(label=name, wipe=True) for name in ("STATE", "EPHEMERAL")]
            request = pb.ResetRequest(graceful=True, reboot=True, system_partitions_to_wipe=labels)
            await client.call("Reset", request, node=address_of(other))
            await wait_for_stage(other, "maintenance")
            assert len((await client.call("EtcdMemberList")).messages[0].members) == 1
        # Talos is still on the disk, so that the ISO is no longer needed.
        assert other.state["key"] == "scsi0"


async def test_changes_are_applied_at_once_where_they_can_be_and_with_a_reboot_else() -> None:
    cluster = Cluster()
    modes = pb.ApplyConfigurationRequest.Mode
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        boot = machine.boot_id
        async with secured(machine, cluster) as client:
            config = cluster.config(nodeLabels={"a": "b"})
            request = pb.ApplyConfigurationRequest(data=config, mode=modes.AUTO)
            answer = (await client.call("ApplyConfiguration", request)).messages[0]
            assert (answer.mode, answer.mode_details) == (
                modes.NO_REBOOT,
                "Applied configuration without a reboot",
            )
            assert machine.boot_id == boot
            config = cluster.config(env={"a": "b"})
            request = pb.ApplyConfigurationRequest(data=config, mode=modes.NO_REBOOT)
            status, _ = await refused(client, "ApplyConfiguration", request)
            assert status is Status.INVALID_ARGUMENT
            request = pb.ApplyConfigurationRequest(data=config, mode=modes.AUTO)
            answer = (await client.call("ApplyConfiguration", request)).messages[0]
            assert answer.mode == modes.REBOOT
        await wait_until(machine, lambda: machine.boot_id != boot)
        await wait_for_stage(machine, "running")
        assert machine.config is not None
        assert machine.config.machine["env"] == {"a": "b"}


async def test_an_upgrade_changes_the_version_and_keeps_the_configuration() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        boot = machine.boot_id
        async with secured(machine, cluster) as client:
            request = pb.UpgradeRequest(image="ghcr.io/siderolabs/installer:v1.12.2")
            assert (await client.call("Upgrade", request)).messages[0].ack == "Upgrade request received"
        await wait_until(machine, lambda: machine.boot_id != boot)
        await wait_for_stage(machine, "running")
        async with secured(machine, cluster) as client:
            assert (await client.call("Version")).messages[0].version.tag == "v1.12.2"


async def test_a_running_cluster_continues_in_a_lab_that_is_started_again(tmp_path: Any) -> None:
    cluster = Cluster()
    async with lab_client(data=tmp_path) as api:
        (machine,) = await start(api, cluster, one="controlplane")
        async with secured(machine, cluster) as client:
            await client.call("Bootstrap")
    async with lab_client(data=tmp_path) as api:
        again = api.world.machines.talos(100)
        assert again is not None
        await wait_for_stage(again, "running")
        async with secured(again, cluster) as client:
            assert len((await client.call("EtcdMemberList")).messages[0].members) == 1


async def test_a_shutdown_stops_the_vm() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        (machine,) = await start(api, cluster, one="controlplane")
        async with secured(machine, cluster) as client:
            await client.call("Shutdown")
        await wait_until(machine, lambda: api.world.machines.talos(100) is None)
        assert (await api.get("/nodes/pve1/qemu/100/status/current"))["status"] == "stopped"


async def test_a_restored_lab_has_the_machines_of_the_time_when_it_was_saved() -> None:
    cluster = Cluster()
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        api.running.lifecycle.save("before")
        await apply(machine, cluster.config())
        await wait_for_stage(machine, "running")
        await api.running.lifecycle.restore("before")
        again = api.world.machines.talos(100)
        assert again is not None
        await wait_for_stage(again, "maintenance")
        await apply(again, cluster.config())
        await wait_for_stage(again, "running")
        await api.running.lifecycle.reset()
        assert api.world.machines.talos(100) is None
