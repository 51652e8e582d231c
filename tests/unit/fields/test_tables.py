"""Rows name what is there: fields of the model, attributes of bpg's resource; and both directions agree."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard import bpg_schema, desired
from stackyard.fields import container, guest, vm
from stackyard.fields.properties import parse
from stackyard.fields.table import Effect, Table

VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"

# Table, its model, the resource, its block there, and fields of the model that code looks after.
TABLES: list[tuple[Table, type[desired.Value], str, str, set[str]]] = [
    (vm.CPU, desired.Cpu, VM, "cpu", set()),
    (vm.MEMORY, desired.Memory, VM, "memory", set()),
    (vm.NUMA_NODE, desired.NumaNode, VM, "numa", {"device"}),
    (vm.AGENT, desired.Agent, VM, "agent", {"timeout_s"}),
    (vm.DISPLAY, desired.Display, VM, "vga", set()),
    (vm.AUDIO, desired.Audio, VM, "audio_device", set()),
    (vm.RANDOM_NUMBERS, desired.RandomNumbers, VM, "rng", set()),
    (vm.WATCHDOG, desired.Watchdog, VM, "watchdog", set()),
    (vm.PCI_DEVICE, desired.PciDevice, VM, "hostpci", {"device"}),
    (vm.USB_DEVICE, desired.UsbDevice, VM, "usb", set()),
    (vm.DISK, desired.Disk, VM, "disk", {"datastore", "file", "format", "interface", "size_gib", "speed"}),
    (vm.SPEED, desired.SpeedLimits, VM, "disk.speed", set()),
    (vm.EFI_DISK, desired.EfiDisk, VM, "efi_disk", set()),
    (vm.TPM, desired.Tpm, VM, "tpm_state", set()),
    (vm.USER, desired.User, VM, "initialization.user_account", {"groups", "password", "shell", "sudo"}),
    (guest.DNS, desired.Dns, VM, "initialization.dns", set()),
    (guest.DNS, desired.Dns, CONTAINER, "initialization.dns", set()),
    (guest.STARTUP, desired.Startup, VM, "startup", set()),
    (guest.STARTUP, desired.Startup, CONTAINER, "startup", set()),
    (container.MEMORY, desired.ContainerMemory, CONTAINER, "memory", set()),
    (container.CONSOLE, desired.Console, CONTAINER, "console", set()),
    (container.FEATURES, desired.Features, CONTAINER, "features", set()),
    (container.ROOT_DISK, desired.RootDisk, CONTAINER, "disk", {"datastore", "size_gib"}),
    (container.MOUNT_POINT, desired.MountPoint, CONTAINER, "mount_point", {"size_gib", "volume"}),
    (container.DEVICE, desired.Device, CONTAINER, "device_passthrough", set()),
]
# Tables with a part of a model.
PARTS: list[tuple[Table, type[desired.Value], str, str]] = [
    (vm.BASICS, desired.Vm, VM, ""),
    (vm.CLOUD_INIT, desired.CloudInit, VM, "initialization"),
    (vm.CLOUD_INIT_FILES, desired.CloudInit, VM, "initialization"),
    (container.BASICS, desired.Container, CONTAINER, ""),
    (container.CPU, desired.Cpu, CONTAINER, "cpu"),
]
NAMED = [f"{block or 'basics'} of {model.__name__}" for _, model, _, block, _ in TABLES]


def attributes_of(resource: str, path: str) -> set[str]:
    block = bpg_schema.load_kind(
        "resources", resource.removeprefix("proxmox_virtual_environment_"), resource
    )["block"]
    for name in path.split(".") if path else ():
        block = block["blocks"][name]["block"]
    return {*block.get("attributes", {}), *block.get("blocks", {})}


@pytest.mark.parametrize(("table", "model", "resource", "block", "code"), TABLES, ids=NAMED)
def test_every_field_of_a_block_has_a_row(
    table: Table, model: type[desired.Value], resource: str, block: str, code: set[str]
) -> None:
    assert {row.field for row in table} | code == set(model.model_fields)
    assert {row.name for row in table} <= attributes_of(resource, block)


@pytest.mark.parametrize(("table", "model", "resource", "block"), PARTS)
def test_every_row_names_a_field_and_an_attribute(
    table: Table, model: type[desired.Value], resource: str, block: str
) -> None:
    assert {row.field for row in table} <= set(model.model_fields)
    assert {row.name for row in table} <= attributes_of(resource, block)


def test_cards_and_interfaces_have_every_field() -> None:
    addresses = {row.field for row in vm.IP_CONFIG}
    assert {row.field for row in vm.CARD} | addresses == set(desired.Nic.model_fields)
    rows = {row.field for row in container.INTERFACE if row.field}
    assert rows == set(desired.ContainerNic.model_fields)
    names = {row.name for row in container.INTERFACE} - guest.ADDRESSES.keys()
    assert names <= attributes_of(CONTAINER, "network_interface")


@pytest.mark.parametrize(("blocks", "resource"), [(vm.BLOCKS, VM), (container.BLOCKS, CONTAINER)])
def test_every_table_with_a_block_names_one_of_the_resource(blocks: dict[str, Table], resource: str) -> None:
    assert blocks.keys() <= attributes_of(resource, "")


def test_a_row_says_what_its_change_means_where_its_table_does_not() -> None:
    assert [row.field for row in vm.DISK.rows_with(Effect.LIVE)] == ["backup", "replicate"]
    assert [row.field for row in vm.EFI_DISK.rows_with(Effect.REPLACE)] == ["type"]
    assert vm.CARD.rows_with(Effect.LIVE) == vm.CARD.rows


BLOCKS: list[tuple[Table, dict[str, Any], str]] = [
    (
        vm.PCI_DEVICE,
        {
            "id": "",
            "mapping": "gpu",
            "mdev": "",
            "pcie": True,
            "rombar": False,
            "rom_file": "",
            "xvga": False,
        },
        "mapping=gpu,pcie=1,rombar=0,x-vga=0",
    ),
    (vm.AGENT, {"enabled": True, "trim": False, "type": "isa"}, "enabled=1,fstrim_cloned_disks=0,type=isa"),
    (vm.TPM, {"datastore_id": "ceph", "version": "v1.2"}, "file=ceph:1,version=v1.2"),
    (guest.STARTUP, {"order": 0, "up_delay": -1, "down_delay": 30}, "order=0,down=30"),
    (
        container.FEATURES,
        {"fuse": False, "keyctl": True, "mknod": False, "nesting": True, "mount": ["nfs", "cifs"]},
        "keyctl=1,nesting=1,mount=nfs;cifs",
    ),
]


@pytest.mark.parametrize(("table", "block", "text"), BLOCKS)
def test_a_block_is_written_as_a_property_string_and_read_again(
    table: Table, block: dict[str, Any], text: str
) -> None:
    assert table.write_text(block) == text
    assert table.read_text(text) == block


def test_what_proxmox_has_not_set_is_what_it_means_by_that() -> None:
    assert vm.MEMORY.read({})["dedicated"] == 0
    assert vm.MEMORY.defaults()["dedicated"] == 512
    assert vm.RANDOM_NUMBERS.read({})["max_bytes"] is None
    assert vm.DISK.read(parse("local:1/x.raw", "file"))["backup"] is True


def test_numbers_of_the_model_are_written_whole_where_they_are() -> None:
    cpu = desired.Cpu(limit=2.0)
    assert repr(vm.CPU.render(cpu)["limit"]) == "2"
    assert vm.CPU.render(desired.Cpu(limit=0.5))["limit"] == 0.5


def test_values_that_the_model_names_otherwise_go_both_ways() -> None:
    discard = next(row for row in vm.DISK if row.field == "discard")
    assert [
        discard.render(desired.Disk(interface="scsi0", datastore="x", discard=on)) for on in (True, False)
    ] == [
        "on",
        "ignore",
    ]
    assert (discard.to_field("on"), discard.to_field("ignore")) == (True, False)
    architecture = next(row for row in container.CPU if row.field == "architecture")
    assert (architecture.to_field("arm64"), architecture.to_field("amd64")) == ("aarch64", None)
