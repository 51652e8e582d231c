"""What a VM of the lab boots from, when Talos comes up, and what its agent and addresses say of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client
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

from pvelab.world.storage.contents import put_file
from stackyard.talosapi.schematic import Schematic

PROBLEMS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an old CPU type": ({"cpu": "kvm64"}, {}, "kvm64 lacks x86-64-v2"),
    "no CPU type": ({"cpu": None}, {}, "kvm64 lacks x86-64-v2"),
    "an image for ARM": ({}, {"arch": "arm64"}, "the image is for arm64"),
    "secure boot without UEFI": ({}, {"secureboot": True}, "needs UEFI"),
    "the keys of others": (
        {"bios": "ovmf", "efidisk0": "local-lvm:1,efitype=4m,pre-enrolled-keys=1"},
        {"secureboot": True},
        "pre-enrolled-keys=1",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
async def test_a_machine_that_cannot_boot_has_neither_an_api_nor_an_address(name: str) -> None:
    config, image, text = PROBLEMS[name]
    async with lab_client() as api:
        await put_image(api, **image)
        machine = await boot_talos(api, **config)
        assert text in machine.state["problem"]
        assert not machine.is_open
        with pytest.raises(Refused, match="QEMU guest agent is not running"):
            await api.get("/nodes/pve1/qemu/100/agent/network-get-interfaces")


async def test_secure_boot_works_with_an_efi_disk_without_keys() -> None:
    async with lab_client() as api:
        await put_image(api, secureboot=True)
        machine = await boot_talos(api, bios="ovmf", efidisk0="local-lvm:1,efitype=4m")
        await wait_for_stage(machine, "maintenance")


async def test_a_vm_without_its_iso_does_not_start() -> None:
    async with lab_client() as api:
        await put_image(api)
        await boot_talos(api)
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.delete("/nodes/pve1/storage/local/content/local:iso/talos.iso")
        upid = await api.post("/nodes/pve1/qemu/100/status/start")
        assert await api.done(upid) == "volume 'local:iso/talos.iso' does not exist"


async def test_the_iso_halts_where_talos_is_installed_and_the_disk_continues() -> None:
    async with lab_client() as api:
        machine = await install(api)
        assert machine.stage == "running"
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.put("/nodes/pve1/qemu/100/config", boot="order=ide2;scsi0")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        halted = api.world.machines.talos(100)
        assert halted is not None
        assert "already installed to disk /dev/sda" in halted.state["problem"]
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        assert api.world.machines.talos(100) is None
        await api.put("/nodes/pve1/qemu/100/config", boot="order=scsi0;ide2")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        again = api.world.machines.talos(100)
        assert again is not None
        await wait_for_stage(again, "running")


async def install(api: LabClient) -> Any:
    await put_image(api)
    machine = await boot_talos(api)
    await wait_for_stage(machine, "maintenance")
    await apply(machine, Cluster().config())
    await wait_for_stage(machine, "running")
    return machine


async def test_a_schematic_may_keep_the_iso_from_halting() -> None:
    async with lab_client() as api:
        await put_image(api, schematic=Schematic(extra_kernel_args=("-talos.halt_if_installed",)))
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        await apply(machine, Cluster().config())
        await wait_for_stage(machine, "running")
        await api.put("/nodes/pve1/qemu/100/config", boot="order=ide2;scsi0")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/reset"))
        again = api.world.machines.talos(100)
        assert again is not None
        assert again.state["problem"] is None


async def test_the_agent_answers_only_if_the_image_has_it() -> None:
    async with lab_client() as api:
        await put_image(api)
        await wait_for_stage(await boot_talos(api), "maintenance")
        found = await api.get("/nodes/pve1/qemu/100/agent/network-get-interfaces")
        assert "ens18" in {one["name"] for one in found["result"]}
        await put_image(api, "plain.iso", schematic=Schematic())
        plain = await boot_talos(api, 101, ide2="local:iso/plain.iso,media=cdrom")
        await wait_for_stage(plain, "maintenance")
        with pytest.raises(Refused, match="QEMU guest agent is not running"):
            await api.get("/nodes/pve1/qemu/101/agent/network-get-interfaces")


async def test_a_metal_image_knows_nothing_of_cloud_init_and_asks_dhcp() -> None:
    async with lab_client() as api:
        await put_image(api, platform="metal")
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        found = await api.get("/nodes/pve1/qemu/100/agent/network-get-interfaces")
        addresses = [a["ip-address"] for one in found["result"] for a in one["ip-addresses"]]
        assert any(address.startswith("10.31.") for address in addresses)
        # That is no address of this machine: the lab forwards a port to it.
        row = (await api.raw("GET", "/guests", base="/_lab")).json["guests"][0]
        assert row["talos"]["stage"] == "maintenance"
        async with talos_client((row["host"], row["ports"]["50000"])) as client:
            assert (await client.call("Disks")).messages[0].disks


async def test_a_disk_image_needs_no_installation() -> None:
    async with lab_client() as api:
        await put_image(api, "talos.qcow2")
        disk = "local-lvm:0,import-from=local:import/talos.qcow2"
        machine = await boot_talos(api, ide2=None, scsi0=disk, boot="order=scsi0")
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster()
        # The platform of a cloud does not want an install section.
        await apply(machine, cluster.config(install={}))
        await wait_for_stage(machine, "running")
        async with secured(machine, cluster) as client:
            assert (await client.call("Version")).messages[0].platform.name == "nocloud"


async def test_a_wrong_install_disk_brings_the_machine_back_to_maintenance_mode() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        boot = machine.boot_id
        await apply(machine, Cluster().config(install={"disk": "/dev/vda"}))
        await wait_until(machine, lambda: machine.boot_id != boot)
        await wait_for_stage(machine, "maintenance")


async def test_user_data_with_a_configuration_takes_the_place_of_maintenance_mode() -> None:
    async with lab_client() as api:
        await put_image(api)
        cluster = Cluster()
        blob = api.world.blobs.put(cluster.config())
        with api.world.store.transaction():
            put_file(api.world, "local:snippets/node.yaml", "pve1", blob)
        machine = await boot_talos(api, cicustom="user=local:snippets/node.yaml")
        await wait_for_stage(machine, "running")
