"""A virtual machine as a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Agent, Inline
from stackyard.render.addresses import dns_blocks, ip_config_blocks
from stackyard.render.guest import lifecycle, moved_by_cluster, password_of, startup_blocks
from stackyard.render.terms import Json, blocks, present, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Disk, File, Nic, Vm
    from stackyard.render.references import References

__all__ = ["vm_resource"]

_NO_AGENT = Agent(enabled=False)


def vm_resource(vm: Vm, references: References) -> dict[str, Json]:
    """Return the arguments of the resource; every value is written out, whatever the defaults are."""
    return {
        **_identity(vm, references),
        **_processing(vm),
        **_drives(vm, references),
        **_devices(vm),
        **_network(vm),
        **_beginning(vm, references),
        **present({"depends_on": references.before(vm)}),
        **lifecycle(*_left_alone(vm)),
    }


def _left_alone(vm: Vm) -> Iterator[str]:
    """Return what is not changed of a guest that was there before, or that the cluster looks after."""
    if vm.imported and vm.os_type == "other":
        # Proxmox may know nothing of the system, which the provider takes for a difference.
        yield "operating_system"
    if vm.imported and vm.cloud_init is None:
        # There may be settings for cloud-init without a drive that would tell them.
        yield "initialization"
    yield from moved_by_cluster(vm)


def _says_no_agent(vm: Vm) -> bool:
    """Tell whether Proxmox may have no word on the agent: then every block would be a difference."""
    return vm.imported and vm.agent == _NO_AGENT


def _identity(vm: Vm, references: References) -> dict[str, Json]:
    return present(
        {
            "name": vm.name,
            "node_name": vm.node,
            "vm_id": vm.vm_id,
            "description": vm.description,
            "tags": vm.tags,
            "pool_id": references.pool(vm.pool),
            "protection": vm.protection,
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


def _processing(vm: Vm) -> dict[str, Json]:
    cpu, memory = vm.cpu, vm.memory
    return present(
        {
            "machine": vm.machine,
            "bios": vm.bios,
            "acpi": vm.acpi,
            "hotplug": vm.hotplug,
            "kvm_arguments": vm.kvm_arguments,
            "scsi_hardware": vm.scsi_hardware,
            "operating_system": blocks({"type": vm.os_type}),
            "cpu": blocks(
                {
                    "cores": cpu.cores,
                    "sockets": cpu.sockets,
                    "type": cpu.type,
                    "architecture": cpu.architecture,
                    "flags": cpu.flags,
                    "numa": cpu.numa,
                    "hotplugged": cpu.hotplugged,
                    "limit": whole(cpu.limit),
                    "units": cpu.units,
                    "affinity": cpu.affinity,
                }
            ),
            "memory": blocks(
                {
                    "dedicated": memory.dedicated_mib,
                    "floating": memory.floating_mib,
                    "shared": memory.shared_mib,
                    "hugepages": memory.hugepages,
                    "keep_hugepages": memory.keep_hugepages or None,
                }
            ),
            "numa": [
                present(
                    {
                        "device": node.device,
                        "cpus": node.cpus,
                        "memory": node.memory_mib,
                        "hostnodes": node.host_nodes,
                        "policy": node.policy,
                    }
                )
                for node in vm.numa_nodes
            ],
        }
    )


def _drives(vm: Vm, references: References) -> dict[str, Json]:
    efi, tpm, cdrom = vm.efi_disk, vm.tpm, vm.cdrom
    return present(
        {
            "disk": [_disk(disk, references) for disk in vm.disks],
            "efi_disk": blocks(
                {
                    "datastore_id": efi.datastore,
                    "type": efi.type,
                    "pre_enrolled_keys": efi.pre_enrolled_keys,
                    "file_format": efi.format,
                }
                if efi is not None
                else None
            ),
            "tpm_state": blocks(
                {"datastore_id": tpm.datastore, "version": tpm.version} if tpm is not None else None
            ),
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
    speed = disk.speed
    return present(
        {
            "interface": disk.interface,
            "datastore_id": disk.datastore,
            "size": disk.size_gib,
            "import_from": source if is_import else None,
            "file_id": None if is_import else source,
            "file_format": disk.format,
            "cache": disk.cache,
            "aio": disk.aio,
            "ssd": disk.ssd,
            "discard": "on" if disk.discard else "ignore",
            "iothread": disk.iothread,
            "backup": disk.backup,
            "replicate": disk.replicate,
            "queues": disk.queues,
            "serial": disk.serial,
            "speed": blocks(
                {
                    "read": speed.read_mb,
                    "read_burstable": speed.read_burst_mb,
                    "write": speed.write_mb,
                    "write_burstable": speed.write_burst_mb,
                    "iops_read": speed.read_iops,
                    "iops_read_burstable": speed.read_burst_iops,
                    "iops_write": speed.write_iops,
                    "iops_write_burstable": speed.write_burst_iops,
                }
                if speed is not None
                else None
            ),
        }
    )


def _devices(vm: Vm) -> dict[str, Json]:
    agent, display = vm.agent, vm.display
    return present(
        {
            "agent": blocks(
                {
                    "enabled": agent.enabled,
                    "trim": agent.trim,
                    "type": agent.type,
                    "timeout": f"{agent.timeout_s}s",
                }
                if not _says_no_agent(vm)
                else None
            ),
            "tablet_device": vm.tablet,
            "keyboard_layout": vm.keyboard_layout,
            "serial_device": [{"device": serial.device} for serial in vm.serials],
            "vga": blocks(
                {"type": display.type, "memory": display.memory_mib, "clipboard": display.clipboard}
                if display is not None
                else None
            ),
            **_small_devices(vm),
            "hostpci": [
                present(
                    {
                        "device": pci.device,
                        "id": pci.id,
                        "mapping": pci.mapping,
                        "mdev": pci.mdev,
                        "pcie": pci.pcie,
                        "rombar": pci.rombar,
                        "rom_file": pci.rom_file,
                        "xvga": pci.primary_gpu,
                    }
                )
                for pci in vm.pci_devices
            ],
            "usb": [
                present({"host": usb.host, "mapping": usb.mapping, "usb3": usb.usb3})
                for usb in vm.usb_devices
            ],
        }
    )


def _small_devices(vm: Vm) -> dict[str, Json]:
    audio, numbers, watchdog = vm.audio, vm.random_numbers, vm.watchdog
    return {
        "audio_device": blocks(
            {"device": audio.device, "driver": audio.driver, "enabled": True} if audio is not None else None
        ),
        "rng": blocks(
            {"source": numbers.source, "max_bytes": numbers.max_bytes, "period": numbers.period_ms}
            if numbers is not None
            else None
        ),
        "watchdog": blocks(
            {"model": watchdog.model, "action": watchdog.action, "enabled": True}
            if watchdog is not None
            else None
        ),
    }


def _network(vm: Vm) -> dict[str, Json]:
    return present({"network_device": [_nic(nic) for nic in vm.nics]})


def _nic(nic: Nic) -> dict[str, Json]:
    # The provider takes the cards as one attribute, whose objects have to be complete; zero is its "unset".
    return {
        **present({"bridge": nic.bridge, "model": nic.model, "trunks": nic.trunks or ""}),
        "mac_address": nic.mac,
        "vlan_id": nic.vlan or 0,
        "mtu": nic.mtu or 0,
        "queues": nic.queues or 0,
        "rate_limit": whole(nic.rate_limit_mb) or 0,
        "firewall": nic.firewall,
        # Deprecated, and still part of the object.
        "enabled": None,
        "disconnected": nic.disconnected,
    }


def _beginning(vm: Vm, references: References) -> dict[str, Json]:
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
            "type": init.type,
            "upgrade": init.upgrade,
            "user_data_file_id": _data_file(init.user_data, references),
            "vendor_data_file_id": _data_file(init.vendor_data, references),
            "network_data_file_id": _data_file(init.network_data, references),
            "meta_data_file_id": _data_file(init.meta_data, references),
            "user_account": blocks(
                {"username": user.name, "keys": user.keys, "password": password_of(user.password)}
                if user is not None
                else None
            ),
            "dns": dns_blocks(vm.dns),
            "ip_config": ip_config_blocks(vm.nics),
        }
    )


def _data_file(data: File | Inline | None, references: References) -> str | None:
    """Return where some data is; whatever is inline has become a file before."""
    if isinstance(data, Inline):
        raise TypeError("inline data has to be expanded into a file first")
    return references.file(data)
