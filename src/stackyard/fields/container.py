"""The rows of a container, block by block."""

from __future__ import annotations

from typing import Any

from stackyard.fields.guest import STARTUP
from stackyard.fields.properties import flag, number, parse_integer
from stackyard.fields.table import COUNT, FLAG, LIST, NUMBER, SENT, SWITCH, WHOLE, Effect, Form, Row, Table

__all__ = [
    "BASICS",
    "BLOCKS",
    "CONSOLE",
    "CPU",
    "DEVICE",
    "FEATURES",
    "INTERFACE",
    "MEMORY",
    "MOUNT_POINT",
    "ROOT_DISK",
]

# Proxmox and the provider name processors differently for containers.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_USUAL_ARCHITECTURE = "amd64"


def _to_architecture(name: str) -> str | None:
    if name == _USUAL_ARCHITECTURE:
        return None
    return next((ours for ours, theirs in _ARCHITECTURES.items() if theirs == name), name)


def _write_rate(rate: Any) -> str | None:
    return f"{float(rate):g}" if rate else None


_RATE = Form(write=_write_rate, read=number, empty=0)
# On unless it says otherwise: only that is sent.
_ON = Form(write=lambda value: False if value is False else None, read=flag, empty=True)
_ID = Form(write=lambda value: value or 0, read=parse_integer, empty=0)

# What is one value each.
BASICS = Table(
    effect=Effect.LIVE,
    rows=(
        Row(field="description"),
        Row(field="hook_script", attribute="hook_script_file_id", key="hookscript"),
        Row(field="protection", form=FLAG),
        Row(field="on_boot", attribute="start_on_boot", key="onboot", form=FLAG),
    ),
)
CPU = Table(
    effect=Effect.LIVE,
    rows=(
        Row(
            field="architecture",
            key="arch",
            default=_USUAL_ARCHITECTURE,
            to_attribute=lambda name: _ARCHITECTURES.get(name, name),
            to_field=_to_architecture,
        ),
        Row(field="cores", form=COUNT, default=1),
        Row(field="limit", key="cpulimit", form=NUMBER),
        Row(field="units", key="cpuunits", form=WHOLE),
    ),
)
MEMORY = Table(
    effect=Effect.LIVE,
    rows=(
        Row(field="dedicated_mib", attribute="dedicated", key="memory", form=COUNT, default=512, unset=0),
        Row(field="swap_mib", attribute="swap", form=COUNT),
    ),
)
CONSOLE = Table(
    effect=Effect.REBOOT,
    rows=(
        Row(field="enabled", key="console", form=FLAG, default=True),
        Row(field="type", key="cmode", default="tty"),
        Row(field="tty_count", key="tty", form=COUNT, default=2),
    ),
)
FEATURES = Table(
    rows=(
        Row(field="fuse", form=SWITCH),
        Row(field="keyctl", form=SWITCH),
        Row(field="mknod", form=SWITCH),
        Row(field="nesting", form=SWITCH),
        Row(field="mount", form=LIST),
    )
)
# The options of a disk; which volume it is, and how large, is code.
ROOT_DISK = Table(
    bare="volume",
    rows=(
        Row(field="acl", form=SWITCH),
        Row(field="mount_options", key="mountoptions", form=LIST, effect=Effect.REBOOT),
        Row(field="quota", form=SWITCH),
        Row(field="replicate", form=SWITCH, effect=Effect.LIVE),
    ),
)
MOUNT_POINT = Table(
    bare="volume",
    effect=Effect.REBOOT,
    rows=(
        Row(field="path", key="mp", form=SENT),
        Row(field="acl", form=SWITCH),
        Row(field="backup", form=SWITCH),
        Row(field="mount_options", key="mountoptions", form=LIST),
        Row(field="quota", form=SWITCH),
        Row(field="replicate", form=_ON),
        Row(field="read_only", key="ro", form=SWITCH),
        Row(field="shared", form=SWITCH),
    ),
)
DEVICE = Table(
    bare="path",
    effect=Effect.REBOOT,
    rows=(
        Row(field="path", form=SENT),
        Row(field="deny_write", key="deny-write", form=SWITCH),
        Row(field="gid", form=_ID),
        Row(field="mode", default="0660"),
        Row(field="uid", form=_ID),
    ),
)
# The addresses are a block of their own in a resource: `ADDRESSES` says where in it.
INTERFACE = Table(
    bare="name",
    effect=Effect.REBOOT,
    rows=(
        Row(field="name", form=SENT),
        Row(field="bridge"),
        Row(field="firewall", form=SWITCH),
        Row(field="", attribute="host_managed", key="host-managed", form=SWITCH),
        Row(field="mac", attribute="mac_address", key="hwaddr"),
        Row(field="ipv4", attribute="ip"),
        Row(field="gateway4", attribute="gw"),
        Row(field="ipv6", attribute="ip6"),
        Row(field="gateway6", attribute="gw6"),
        Row(field="mtu", form=WHOLE),
        Row(field="rate_limit_mb", attribute="rate_limit", key="rate", form=_RATE),
        Row(field="vlan", attribute="vlan_id", key="tag", form=WHOLE),
    ),
)
# The blocks of the resource that are rows of one table.
BLOCKS = {
    "console": CONSOLE,
    "cpu": CPU,
    "device_passthrough": DEVICE,
    "features": FEATURES,
    "memory": MEMORY,
    "mount_point": MOUNT_POINT,
    "network_interface": INTERFACE,
    "startup": STARTUP,
}
