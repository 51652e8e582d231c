"""The rows of a virtual machine, block by block."""

from __future__ import annotations

import urllib.parse
from typing import Any

from stackyard.fields.guest import STARTUP
from stackyard.fields.table import (
    COUNT,
    FLAG,
    LIST,
    NUMBER,
    SENT,
    SWITCH,
    TEXT,
    WHOLE,
    Effect,
    Form,
    Row,
    Table,
)

__all__ = [
    "AGENT",
    "AMD_SEV",
    "AUDIO",
    "BASICS",
    "BLOCKS",
    "CARD",
    "CLOUD_INIT",
    "CLOUD_INIT_FILES",
    "CPU",
    "DISK",
    "DISPLAY",
    "EFI_DISK",
    "IP_CONFIG",
    "MEMORY",
    "NUMA_NODE",
    "PCI_DEVICE",
    "RANDOM_NUMBERS",
    "SHARED_FOLDER",
    "SPEED",
    "TPM",
    "USB_DEVICE",
    "USER",
    "WATCHDOG",
]


def _or(value: Any, form: Form) -> Form:
    """Return a form that sends a value in place of nothing."""
    return Form(write=lambda given: given or value, read=form.read, empty=value)


def _write_keys(keys: list[str] | None) -> str | None:
    # Escaped once more than everything else.
    return urllib.parse.quote("\n".join(key or "" for key in keys), safe="") if keys else None


def _read_keys(value: Any) -> list[str]:
    keys = urllib.parse.unquote_plus(str(value)).strip()
    return keys.split("\n") if keys else []


# An empty text for "args" comes back as a blank.
_ARGUMENTS = Form(write=TEXT.write, read=lambda value: str(value) if str(value).strip() else "", empty="")
# A volume that is there is known by its storage; a new one is created there.
_VOLUME = Form(
    write=lambda storage: f"{storage}:1", read=lambda volume: volume.partition(":")[0], empty="local-lvm"
)

# What is one value each.
BASICS = Table(
    rows=(
        Row(field="acpi", form=FLAG, default=True),
        Row(field="kvm_arguments", key="args", form=_ARGUMENTS, to_field=lambda text: text.strip() or None),
        Row(field="bios", default="seabios"),
        Row(field="description", effect=Effect.LIVE),
        Row(field="hook_script", attribute="hook_script_file_id", key="hookscript", effect=Effect.LIVE),
        Row(field="keyboard_layout", key="keyboard", default="en-us"),
        Row(field="machine"),
        Row(field="name", effect=Effect.LIVE),
        Row(field="protection", form=FLAG, effect=Effect.LIVE),
        Row(field="tablet", attribute="tablet_device", key="tablet", form=FLAG, default=True),
        Row(field="scsi_hardware", key="scsihw", default="virtio-scsi-pci"),
    )
)
# `cputype` and `flags` are parts of the property `cpu`.
CPU = Table(
    rows=(
        Row(field="cores", form=COUNT, default=1),
        Row(field="sockets", form=COUNT, default=1),
        Row(field="numa", form=FLAG),
        Row(field="type", key="cputype", default="qemu64", differs=True),
        Row(field="flags", form=LIST),
        Row(field="affinity"),
        Row(field="architecture", key="arch"),
        Row(field="hotplugged", key="vcpus", form=WHOLE),
        Row(field="limit", key="cpulimit", form=NUMBER),
        Row(field="units", key="cpuunits", form=WHOLE),
    )
)
# `memory` may be a property string, whose part `current` counts; `ivshmem` is one, whose `size` does.
MEMORY = Table(
    rows=(
        Row(field="dedicated_mib", attribute="dedicated", key="memory", form=COUNT, default=512, unset=0),
        Row(field="floating_mib", attribute="floating", key="balloon", form=COUNT),
        Row(field="shared_mib", attribute="shared", key="ivshmem", form=WHOLE),
        Row(field="hugepages"),
        Row(
            field="keep_hugepages",
            key="keephugepages",
            form=SWITCH,
            to_attribute=lambda value: value or None,
        ),
    )
)
NUMA_NODE = Table(
    bare="cpus",
    rows=(
        Row(field="cpus", form=SENT),
        Row(field="host_nodes", attribute="hostnodes"),
        Row(field="memory_mib", attribute="memory", form=COUNT),
        Row(field="policy", default="preferred"),
    ),
)
AGENT = Table(
    bare="enabled",
    rows=(
        Row(field="enabled", form=FLAG, differs=True),
        Row(field="trim", key="fstrim_cloned_disks", form=FLAG),
        Row(field="type", default="virtio"),
    ),
)
DISPLAY = Table(
    bare="type",
    rows=(
        Row(field="clipboard"),
        Row(field="memory_mib", attribute="memory", form=WHOLE, default=16),
        Row(field="type", default="std"),
    ),
)
AUDIO = Table(bare="device", rows=(Row(field="device", form=SENT), Row(field="driver", form=SENT)))
RANDOM_NUMBERS = Table(
    bare="source",
    rows=(
        Row(field="source"),
        Row(field="max_bytes", form=_or(1024, WHOLE), unset=None),
        Row(field="period_ms", attribute="period", form=_or(1000, WHOLE), unset=None),
    ),
)
WATCHDOG = Table(
    bare="model", rows=(Row(field="model", default="i6300esb"), Row(field="action", default="none"))
)
PCI_DEVICE = Table(
    bare="host",
    rows=(
        Row(field="id", key="host"),
        Row(field="mapping"),
        Row(field="mdev"),
        Row(field="pcie", form=FLAG),
        Row(field="rombar", form=FLAG, default=True),
        Row(field="rom_file", key="romfile"),
        Row(field="primary_gpu", attribute="xvga", key="x-vga", form=FLAG),
    ),
)
USB_DEVICE = Table(bare="host", rows=(Row(field="host"), Row(field="mapping"), Row(field="usb3", form=FLAG)))
# The options of a disk; which volume it is, how large, and on what, is code.
DISK = Table(
    bare="file",
    rows=(
        Row(field="aio", default="io_uring"),
        Row(field="backup", form=FLAG, default=True, effect=Effect.LIVE),
        Row(field="cache", default="none"),
        Row(
            field="discard",
            default="ignore",
            to_attribute=lambda is_on: "on" if is_on else "ignore",
            to_field=lambda text: text == "on",
        ),
        Row(field="iothread", form=FLAG),
        Row(field="queues", form=WHOLE),
        Row(field="replicate", form=FLAG, default=True, effect=Effect.LIVE),
        Row(field="serial"),
        Row(field="ssd", form=FLAG),
    ),
)
SPEED = Table(
    effect=Effect.LIVE,
    rows=(
        Row(field="read_mb", attribute="read", key="mbps_rd", form=WHOLE),
        Row(field="read_burst_mb", attribute="read_burstable", key="mbps_rd_max", form=WHOLE),
        Row(field="write_mb", attribute="write", key="mbps_wr", form=WHOLE),
        Row(field="write_burst_mb", attribute="write_burstable", key="mbps_wr_max", form=WHOLE),
        Row(field="read_iops", attribute="iops_read", key="iops_rd", form=WHOLE),
        Row(field="read_burst_iops", attribute="iops_read_burstable", key="iops_rd_max", form=WHOLE),
        Row(field="write_iops", attribute="iops_write", key="iops_wr", form=WHOLE),
        Row(field="write_burst_iops", attribute="iops_write_burstable", key="iops_wr_max", form=WHOLE),
    ),
)
EFI_DISK = Table(
    bare="file",
    rows=(
        Row(field="datastore", attribute="datastore_id", key="file", form=_VOLUME),
        Row(field="format", attribute="file_format", key="format", form=_or("raw", TEXT)),
        Row(
            field="type",
            key="efitype",
            form=Form(write=TEXT.write, read=str.lower, empty="2m"),
            differs=True,
            effect=Effect.REPLACE,
        ),
        Row(field="pre_enrolled_keys", key="pre-enrolled-keys", form=FLAG),
    ),
)
TPM = Table(
    bare="file",
    rows=(
        Row(field="datastore", attribute="datastore_id", key="file", form=_VOLUME),
        Row(field="version", form=_or("v2.0", TEXT), effect=Effect.REPLACE),
    ),
)
# The settings of cloud-init; the drive that carries them is code.
CLOUD_INIT = Table(
    rows=(
        Row(field="type", key="citype"),
        # Proxmox upgrades the packages at the first boot unless this is off.
        Row(field="upgrade", key="ciupgrade", form=FLAG, default=True, differs=True),
    )
)
# The parts of `cicustom`.
CLOUD_INIT_FILES = Table(
    rows=(
        Row(field="meta_data", attribute="meta_data_file_id", key="meta"),
        Row(field="network_data", attribute="network_data_file_id", key="network"),
        Row(field="user_data", attribute="user_data_file_id", key="user"),
        Row(field="vendor_data", attribute="vendor_data_file_id", key="vendor"),
    )
)
USER = Table(
    rows=(
        Row(field="name", attribute="username", key="ciuser"),
        Row(field="keys", key="sshkeys", form=Form(write=_write_keys, read=_read_keys, empty=())),
    )
)
# The model has nothing for the encryption of memory and for folders of the node; the provider has.
AMD_SEV = Table(
    bare="type",
    rows=(
        Row(field="", attribute="type", default="std", unset="", form=SENT),
        Row(field="", attribute="allow_smt", key="allow-smt", form=FLAG, default=True, unset=False),
        Row(field="", attribute="kernel_hashes", key="kernel-hashes", form=FLAG),
        Row(field="", attribute="no_debug", key="no-debug", form=FLAG),
        Row(field="", attribute="no_key_sharing", key="no-key-sharing", form=FLAG),
    ),
)
SHARED_FOLDER = Table(
    bare="dirid",
    rows=(
        Row(field="", attribute="mapping", key="dirid", form=SENT),
        Row(field="", attribute="cache", default="auto"),
        Row(field="", attribute="direct_io", key="direct-io", form=FLAG),
        Row(field="", attribute="expose_acl", key="expose-acl", form=FLAG),
        Row(field="", attribute="expose_xattr", key="expose-xattr", form=FLAG),
    ),
)
# The addresses of one card, under the names of their properties.
IP_CONFIG = Table(
    bare="ip",
    rows=(
        Row(field="gateway4", attribute="gw"),
        Row(field="gateway6", attribute="gw6"),
        Row(field="ipv4", attribute="ip"),
        Row(field="ipv6", attribute="ip6"),
    ),
)
# A card is written `virtio=BC:24:11:00:00:01,...`, or with `model` and `macaddr`.
CARD = Table(
    bare="model",
    effect=Effect.LIVE,
    rows=(
        Row(field="model", form=_or("virtio", TEXT)),
        Row(field="bridge", default="vmbr0", unset=""),
        Row(field="firewall", form=FLAG),
        Row(field="disconnected", key="link_down", form=SWITCH),
        Row(field="mac", attribute="mac_address", key="macaddr"),
        Row(field="queues", form=WHOLE),
        Row(field="rate_limit_mb", attribute="rate_limit", key="rate", form=NUMBER),
        Row(field="vlan", attribute="vlan_id", key="tag", form=WHOLE),
        Row(field="mtu", form=WHOLE),
        Row(field="trunks"),
    ),
)
# The blocks of the resource that are rows of one table.
BLOCKS = {
    "agent": AGENT,
    "amd_sev": AMD_SEV,
    "audio_device": AUDIO,
    "cpu": CPU,
    "efi_disk": EFI_DISK,
    "hostpci": PCI_DEVICE,
    "memory": MEMORY,
    "network_device": CARD,
    "numa": NUMA_NODE,
    "rng": RANDOM_NUMBERS,
    "startup": STARTUP,
    "tpm_state": TPM,
    "usb": USB_DEVICE,
    "vga": DISPLAY,
    "virtiofs": SHARED_FOLDER,
    "watchdog": WATCHDOG,
}
