"""A virtual machine as a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Agent, Inline
from stackyard.fields.vm import (
    AGENT,
    AUDIO,
    BASICS,
    CARD,
    CLOUD_INIT,
    CLOUD_INIT_FILES,
    CPU,
    DISK,
    DISPLAY,
    EFI_DISK,
    MEMORY,
    NUMA_NODE,
    PCI_DEVICE,
    RANDOM_NUMBERS,
    SPEED,
    TPM,
    USB_DEVICE,
    USER,
    WATCHDOG,
)
from stackyard.render.addresses import dns_blocks, ip_config_blocks
from stackyard.render.guest import lifecycle, list_cluster_managed, password_of, startup_blocks
from stackyard.render.terms import Json, blocks, present

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.desired import Disk, File, Nic, NumaNode, PciDevice, Value, Vm
    from stackyard.fields.table import Table
    from stackyard.render.references import References

__all__ = ["vm_resource"]

_NO_AGENT = Agent(enabled=False)


def vm_resource(vm: Vm, references: References) -> dict[str, Json]:
    """Return the arguments of the resource; every value is written out, whatever the defaults are."""
    return {
        **_identity(vm, references),
        **_render_system(vm),
        **_drives(vm, references),
        **_devices(vm),
        **_network(vm),
        **_render_creation(vm, references),
        **present({"depends_on": references.before(vm)}),
        **lifecycle(*_list_ignored_changes(vm)),
    }


def _list_ignored_changes(vm: Vm) -> Iterator[str]:
    """Return what is not changed of a guest that was there before, or that the cluster looks after."""
    if vm.imported and vm.os_type == "other":
        # Proxmox may know nothing of the system, which the provider takes for a difference.
        yield "operating_system"
    if vm.imported and vm.cloud_init is None:
        # There may be settings for cloud-init without a drive that would tell them.
        yield "initialization"
    yield from list_cluster_managed(vm)


def _says_no_agent(vm: Vm) -> bool:
    """Return whether Proxmox may have no word on the agent: then every block would be a difference."""
    return vm.imported and vm.agent == _NO_AGENT


def _identity(vm: Vm, references: References) -> dict[str, Json]:
    return present(
        {
            **BASICS.render(vm),
            "node_name": vm.node,
            "vm_id": vm.vm_id,
            "tags": vm.tags,
            "pool_id": references.pool(vm.pool),
            "on_boot": vm.on_boot,
            "started": vm.started and not vm.is_template,
            "template": vm.is_template,
            "migrate": vm.migrate,
            "stop_on_destroy": vm.stop_on_destroy,
            "reboot_after_update": vm.reboot_after_update,
            "hook_script_file_id": references.file(vm.hook_script),
            "startup": startup_blocks(vm.startup),
        }
    )


def _render_system(vm: Vm) -> dict[str, Json]:
    return present(
        {
            "hotplug": vm.hotplug,
            "operating_system": blocks({"type": vm.os_type}),
            "cpu": blocks(CPU.render(vm.cpu)),
            "memory": blocks(MEMORY.render(vm.memory)),
            "numa": _devices_of(NUMA_NODE, vm.numa_nodes),
        }
    )


def _devices_of(table: Table, values: Sequence[NumaNode | PciDevice]) -> list[dict[str, Json]]:
    return [present({"device": one.device, **table.render(one)}) for one in values]


def _block(table: Table, value: Value | None, **more: Json) -> list[dict[str, Json]]:
    """Return a block that is there when the model has the value."""
    return blocks({**table.render(value), **more} if value is not None else None)


def _drives(vm: Vm, references: References) -> dict[str, Json]:
    cdrom = vm.cdrom
    return present(
        {
            "disk": [_disk(disk, references) for disk in vm.disks],
            "efi_disk": _block(EFI_DISK, vm.efi_disk),
            "tpm_state": _block(TPM, vm.tpm),
            "cdrom": blocks(
                {"file_id": references.file(cdrom.file) or "none", "interface": cdrom.interface}
                if cdrom is not None
                else None
            ),
            "boot_order": vm.boot_order,
        }
    )


def _disk(disk: Disk, references: References) -> dict[str, Json]:
    source = references.file(disk.file)
    is_import = source is not None and ":import/" in source
    return present(
        {
            "interface": disk.interface,
            "datastore_id": disk.datastore,
            "size": disk.size_gib,
            "import_from": source if is_import else None,
            "file_id": None if is_import else source,
            "file_format": disk.format,
            **DISK.render(disk),
            "speed": _block(SPEED, disk.speed),
        }
    )


def _devices(vm: Vm) -> dict[str, Json]:
    agent = vm.agent
    return present(
        {
            "agent": _block(AGENT, None if _says_no_agent(vm) else agent, timeout=f"{agent.timeout_s}s"),
            "serial_device": [{"device": serial.device} for serial in vm.serials],
            "vga": _block(DISPLAY, vm.display),
            "audio_device": _block(AUDIO, vm.audio, enabled=True),
            "rng": _block(RANDOM_NUMBERS, vm.random_numbers),
            "watchdog": _block(WATCHDOG, vm.watchdog, enabled=True),
            "hostpci": _devices_of(PCI_DEVICE, vm.pci_devices),
            "usb": [present(USB_DEVICE.render(usb)) for usb in vm.usb_devices],
        }
    )


def _network(vm: Vm) -> dict[str, Json]:
    return present({"network_device": [_nic(nic) for nic in vm.nics]})


def _nic(nic: Nic) -> dict[str, Json]:
    # The provider takes the cards as one attribute, whose objects have to be complete; zero is its "unset".
    complete = {row.name: row.usual if (value := row.render(nic)) is None else value for row in CARD}
    # Deprecated, and still part of the object.
    return {**present(complete), "mac_address": nic.mac, "enabled": None}


def _render_creation(vm: Vm, references: References) -> dict[str, Json]:
    clone = vm.clone
    return present(
        {
            "clone": blocks(
                {
                    "vm_id": clone.vm_id,
                    "node_name": clone.node,
                    "datastore_id": clone.datastore,
                    "full": clone.full,
                    "retries": clone.retries,
                }
                if clone is not None
                else None
            ),
            "initialization": _initialization(vm, references),
        }
    )


def _initialization(vm: Vm, references: References) -> list[dict[str, Json]]:
    init = vm.cloud_init
    if init is None:
        return []
    user = init.users[0] if init.users and init.user_data is None else None
    return blocks(
        {
            "datastore_id": init.datastore,
            "interface": init.interface,
            **CLOUD_INIT.render(init),
            **{name: _data_file(file, references) for name, file in CLOUD_INIT_FILES.render(init).items()},
            "user_account": _block(USER, user, password=password_of(user.password if user else None)),
            "dns": dns_blocks(vm.dns),
            "ip_config": ip_config_blocks(vm.nics),
        }
    )


def _data_file(data: File | Inline | None, references: References) -> str | None:
    """Return where some data is; whatever is inline has become a file before."""
    if isinstance(data, Inline):
        raise TypeError("inline data has to be expanded into a file first")
    return references.file(data)
