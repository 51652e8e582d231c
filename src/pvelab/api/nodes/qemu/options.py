"""Which privilege each option of a VM needs, and which drives and devices only root may pass through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.networks import parse_network
from pvelab.server.problems import PveError, bad_parameter
from pvelab.world.bridges import zone_of
from pvelab.world.storage.volume_access import check_volume_access
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volume_names import parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pvelab.server.call import Call

__all__ = ["check_bridges", "check_options", "check_storage_access", "check_vm"]

_PRIVILEGES: Mapping[str, tuple[str, ...]] = {
    "VM.Config.CPU": (
        *("cores", "cpu", "runningcpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus"),
        "affinity",
    ),
    "VM.Config.Memory": ("memory", "balloon", "shares", "allow-ksm"),
    "VM.Config.HWType": (
        *("acpi", "hotplug", "kvm", "machine", "runningmachine", "scsihw", "smbios1", "tablet", "vga"),
        *("watchdog", "audio0", "rng0"),
    ),
    "VM.Config.Options": (
        *("agent", "autostart", "bios", "description", "keyboard", "localtime", "migrate_downtime"),
        *("migrate_speed", "name", "onboot", "ostype", "protection", "reboot", "startdate", "startup"),
        *("tdf", "template", "vmgenid", "tags"),
    ),
    "VM.PowerMgmt": ("freeze",),
    "VM.Config.Disk": ("boot", "bootdisk", "vmstatestorage"),
}
_BY_OPTION = {option: privilege for privilege, options in _PRIVILEGES.items() for option in options}
_CLOUDINIT = frozenset(
    ("cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys")
)
_BY_VALUE = re.compile(r"(?:unused|serial|usb|hostpci|virtiofs)\d+|cdrom")


def check_vm(call: Call, *privileges: str, pool: str | None = None, any_of: bool = False) -> None:
    """Refuse unless the caller has privileges on the VM, or on the pool that it is to be in.

    Raises:
        PveError: 403.
    """
    if pool is None or not call.may(f"/pool/{pool}", *privileges, any_of=any_of):
        call.check(f"/vms/{call.vmid}", *privileges, any_of=any_of)


def check_options(call: Call, options: Iterable[str], pool: str | None = None) -> None:
    """Refuse unless the caller may set (or remove) these options.

    Raises:
        PveError: 403, or the text by which Proxmox keeps an option to root.
    """
    if call.is_root:
        return
    for option in options:
        if drives.is_drive(option) or _BY_VALUE.fullmatch(option):
            continue
        privilege = _BY_OPTION.get(option)
        if privilege is None and re.fullmatch(r"numa\d+", option):
            privilege = "VM.Config.CPU"
        elif privilege is None and re.fullmatch(r"net\d+", option):
            privilege = "VM.Config.Network"
        if privilege is not None:
            check_vm(call, privilege, pool=pool)
        elif option == "vmstate":
            check_vm(call, "VM.Config.Disk", "VM.PowerMgmt", pool=pool)
        elif option in _CLOUDINIT or re.fullmatch(r"ipconfig\d+", option):
            check_vm(call, "VM.Config.Cloudinit", "VM.Config.Network", pool=pool, any_of=True)
        else:
            raise PveError(f"only root can set '{option}' config")
        if option == "startup":
            call.check("/", "Sys.Modify")


def check_storage_access(
    call: Call, settings: Mapping[str, Any], *, default_storage: str | None = None, pool: str | None = None
) -> None:
    """Refuse drives on storages that the caller may not use, and devices that it may not pass through.

    Raises:
        PveError: 403, or what is wrong with the storage.
    """
    for key in drives.drive_keys(settings):
        drive = drives.parse_drive(call.world.facts, key, str(settings[key]))
        _check_drive(call, key, drive, default_storage)
        check_drive_change(call, drive, pool)
    if "vmstatestorage" in settings:
        call.check(f"/storage/{settings['vmstatestorage']}", "Datastore.AllocateSpace")
    for key, value in settings.items():
        if _BY_VALUE.fullmatch(key) or key == "rng0":
            _check_device(call, key, str(value), pool)


def _check_device(call: Call, key: str, value: str, pool: str | None) -> None:
    """Refuse devices of the node to everyone but root, and mapped ones to who may not use the mapping."""
    kind = key.rstrip("0123456789")
    if kind == "unused":
        check_volume_access(call, value.partition(",")[0], "images", call.vmid)
    if call.is_root:
        return
    given = dict(part.partition("=")[::2] for part in value.split(","))
    check_vm(call, "VM.Config.Disk" if kind in ("unused", "virtiofs") else "VM.Config.HWType", pool=pool)
    if kind == "serial" and value != "socket":
        raise PveError(f"only root can set '{key}' config for real devices")
    if kind == "rng" and given.get("source") == "/dev/hwrng":
        call.check("/mapping/hwrng", "Mapping.Use")
    if kind == "virtiofs":
        call.check(f"/mapping/dir/{given.get('dirid', value.partition(',')[0])}", "Mapping.Use")
    if kind not in ("usb", "hostpci"):
        return
    if "mapping" in given:
        call.check(f"/mapping/{'usb' if kind == 'usb' else 'pci'}/{given['mapping']}", "Mapping.Use")
    elif kind == "hostpci":
        raise PveError(f"only root can set '{key}' config for non-mapped devices")
    elif "spice" not in (given.get("host", "").lower(), value.partition(",")[0].lower()):
        raise PveError(f"only root can set '{key}' config for real devices")
    if "romfile" in given:
        raise bad_parameter(key, "only root@pam can set 'romfile' option")


def check_drive_change(call: Call, drive: Mapping[str, Any], pool: str | None = None) -> None:
    """Refuse a change of a drive to who may not change drives of its kind.

    Raises:
        PveError: 403.
    """
    if drives.is_cloudinit(drive):
        check_vm(call, "VM.Config.Cloudinit", "VM.Config.CDROM", pool=pool)
    elif drives.is_cdrom(drive):
        check_vm(call, "VM.Config.CDROM", pool=pool)
    else:
        check_vm(call, "VM.Config.Disk", pool=pool)


def check_bridges(call: Call, settings: Mapping[str, Any]) -> None:
    """Refuse networks on bridges that the caller may not use.

    Raises:
        PveError: 403.
    """
    for key, value in settings.items():
        if not re.fullmatch(r"net\d+", key):
            continue
        network = parse_network(call.world, str(value))
        if network.get("bridge"):
            path = f"/sdn/zones/{zone_of(call.store, network['bridge'])}/{network['bridge']}"
            call.check(f"{path}/{network['tag']}" if network.get("tag") else path, "SDN.Use")


def _check_drive(call: Call, key: str, drive: Mapping[str, Any], default_storage: str | None) -> None:
    volume = str(drive["file"])
    new = drives.is_new_disk(volume)
    if volume in ("none", "cloudinit") or volume.endswith(":cloudinit"):
        return
    if volume == "cdrom":
        call.check("/", "Sys.Console")
    elif new is not None and not drives.is_cdrom(drive):
        storage = new[0] or default_storage
        if not storage:
            raise PveError("no storage ID specified (and no default storage)")
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        config = call.world.storages.config(storage)
        if "images" not in call.world.storages.content_types(config):
            raise bad_parameter("storage", f"storage '{storage}' does not support vm images")
    else:
        check_volume_access(call, volume, vmid=call.vmid)
        if ":" in volume and _content(call, volume) not in ("images", "iso"):
            raise bad_parameter(key, "content type needs to be 'images' or 'iso'")
    if "import-from" in drive:
        _check_source(call, key, str(drive["import-from"]))


def _check_source(call: Call, key: str, source: str) -> None:
    if ":" in source:
        content = _content(call, source)
        if content not in ("images", "import"):
            text = f"{source} has wrong type '{content}' - needs to be 'images' or 'import'"
            raise bad_parameter(key, text)
        owner = owner_of(source)
        if owner is not None:
            call.check(f"/vms/{owner}", "VM.Clone")
            return
    check_volume_access(call, source, vmid=call.vmid)


def _content(call: Call, volid: str) -> str:
    storage, name = parse_volume_id(volid)
    return parse_name(call.world.storages.config(storage), name).content
