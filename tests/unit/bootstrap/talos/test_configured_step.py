"""Secrets go to the machine that is the node, and a node that cannot be installed says so at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.support.lab import lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    put_image,
    start_cluster,
    wait_for_stage,
    wait_until,
)
from tests.support.talos_nodes import Reports, access_to, add_fault, node_of

from pvelab.talos.machine import TalosMachine
from stackyard.bootstrap.step import Presence
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.configured import ConfiguredStep, ForeignNodeError, NotInstalledError
from stackyard.bootstrap.talos.identity import InstallDiskError, OtherMachineError, SecureBootError
from stackyard.clients.talos import FingerprintError, TalosClockError, TalosCredentials
from stackyard.sources.cluster.model import TalosImage


def step_for(
    machine: TalosMachine, cluster: Cluster, *, disk: str = "/dev/sda", installs_on: str = "", **changes: Any
) -> ConfiguredStep:
    image = "ghcr.io/siderolabs/installer:v1.12.1"
    config = cluster.config(install={"disk": installs_on or disk, "image": image})
    return ConfiguredStep(
        node=node_of(machine, **changes),
        config=config.decode(),
        access=access_to(cluster, timeout_s=2.0),
        disk=disk,
        timeout_s=20.0,
    )


async def test_a_node_gets_its_configuration_and_runs() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        step = step_for(machine, Cluster())
        assert (await step.look()).presence is Presence.ABSENT
        await step.do(Reports())
        await step.prove(Reports())
        assert (await step.look()).presence is Presence.PRESENT


async def test_a_machine_with_another_network_card_gets_nothing() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        step = step_for(machine, Cluster(), mac_addr="bc:24:11:ff:ff:ff")
        with pytest.raises(OtherMachineError, match="bc:24:11:ff:ff:ff"):
            await step.do(Reports())
        assert machine.stage == "maintenance"
        assert machine.config is None


async def test_a_disk_that_is_not_there_is_named_with_those_that_are_before_anything_is_sent() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        with pytest.raises(InstallDiskError, match=r"no disk /dev/nvme0n1; it has /dev/sda .20 GiB"):
            await step_for(machine, Cluster(), disk="/dev/nvme0n1").do(Reports())
        assert machine.stage == "maintenance"


@pytest.mark.parametrize("is_secure", [True, False])
async def test_a_machine_that_was_booted_with_or_without_secure_boot_against_its_file_gets_nothing(
    is_secure: bool,
) -> None:
    async with lab_client() as api:
        await put_image(api, secureboot=is_secure)
        machine = await boot_talos(api, bios="ovmf", efidisk0="local-lvm:1,efitype=4m")
        await wait_for_stage(machine, "maintenance")
        described = TalosImage(schematic_id="0" * 64, version="1.12.1", is_secureboot=not is_secure)
        said = f"booted {'with' if is_secure else 'without'} secure boot"
        with pytest.raises(SecureBootError, match=said):
            await step_for(machine, Cluster(), image=described).do(Reports())
        assert (machine.stage, machine.config) == ("maintenance", None)
        described = dataclasses.replace(described, is_secureboot=is_secure)
        await step_for(machine, Cluster(), image=described).do(Reports())
        await wait_for_stage(machine, "running")


async def test_a_node_that_is_back_in_maintenance_mode_is_an_error_at_once() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        # A link of udev, which only the node can follow.
        step = step_for(machine, Cluster(), disk="/dev/disk/by-id/wwn-0x5000")
        await step.do(Reports())
        with pytest.raises(NotInstalledError, match="by-id/wwn-0x5000, and has /dev/sda"):
            await step.prove(Reports())


async def test_a_node_of_another_cluster_is_foreign_and_one_with_a_wrong_clock_is_not() -> None:
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        with pytest.raises(ForeignNodeError, match="does not accept the certificate"):
            await step_for(machine, Cluster()).look()
        await add_fault(api, "certificate-expired", 100)
        step = step_for(machine, cluster)
        found = await step.look()
        assert found.presence is Presence.UNKNOWN
        assert "expired" in found.reason
        async with step.access.open(step.node) as client:
            with pytest.raises(TalosClockError):
                await client.read_version()


async def test_a_node_that_finds_our_certificate_expired_is_of_our_cluster_and_waited_for() -> None:
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        expired = cluster.client(life_s=-60.0)
        credentials = TalosCredentials(
            ca=cluster.authority.certificate_pem, certificate=expired.certificate_pem, key=expired.key_pem
        )
        access = TalosAccess(credentials=credentials, timeout_s=5.0)
        step = dataclasses.replace(step_for(machine, cluster), access=access)
        found = await step.look()
        assert found.presence is Presence.UNKNOWN
        assert "of this cluster" in found.reason
        async with access.open(step.node) as client:
            with pytest.raises(TalosClockError, match="has expired or is not valid yet"):
                await client.read_version()


async def test_a_machine_that_boots_again_in_between_is_another_one_for_an_open_client() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        booted = machine.state.get("booted")
        async with access_to(Cluster()).open_maintenance(node_of(machine)) as client:
            await client.list_disks()
            install = {"disk": "/dev/sdz", "image": "ghcr.io/siderolabs/installer:v1.12.1"}
            await apply(machine, Cluster().config(install=install))
            await wait_until(machine, lambda: machine.state.get("booted") != booted)
            await wait_for_stage(machine, "maintenance")
            with pytest.raises(FingerprintError):
                await client.list_disks()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_configuration_whose_way_or_answer_was_lost_arrives_once(when: str) -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        api.running.add_fault("talos-call", method="ApplyConfiguration", when=when, vmid=100, times=1)
        step, reports = step_for(machine, Cluster()), Reports()
        await step.do(reports)
        await step.prove(reports)
        assert machine.stage == "running"
        stayed = "node-100 to leave maintenance mode"
        assert (stayed in reports.texts) == (when == "before")
