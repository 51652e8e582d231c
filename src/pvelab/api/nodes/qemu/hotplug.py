"""Which changes a running VM takes at once, and which wait for its next start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.networks import parse_network
from pvelab.server.params.properties import parse_boolean
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["CLOUDINIT_OPTIONS", "can_delete", "can_set", "has_agent", "hotplug_features", "is_fast"]

CLOUDINIT_OPTIONS = re.compile(
    r"cicustom|cipassword|citype|ciuser|ciupgrade|nameserver|searchdomain|sshkeys|ipconfig\d+"
)
# What QEMU need not know of.
_FAST = frozenset(
    (
        *("description", "hookscript", "lock", "migrate_downtime", "migrate_speed", "name", "onboot"),
        *("protection", "shares", "startup", "tags", "vmstatestorage"),
    )
)
_CGROUP = frozenset(("cpuunits", "cpulimit"))
_DEFAULT_FEATURES = "network,disk,usb"
_WINDOWS_WITH_USB = frozenset(("win8", "win10", "win11"))
# A running NIC cannot become one with another of these; everything else is done outside of QEMU.
_NIC_IDENTITY = ("model", "macaddr", "queues", "mtu")
_DISK_IDENTITY = ("aio", "discard", "iothread", "queues", "product", "cache", "ssd", "vendor", "ro")


def hotplug_features(config: Mapping[str, Any]) -> frozenset[str]:
    """Return what a running VM takes: `network`, `disk`, `usb`, `cpu`, `memory`, `cloudinit`."""
    text = str(config.get("hotplug", "1"))
    if text == "0":
        return frozenset()
    return frozenset(split_list(_DEFAULT_FEATURES if text == "1" else text))


def has_agent(text: str) -> bool:
    """Return whether an `agent` option enables the guest agent."""
    return _agent_options(text).get("enabled") == "1"


def is_fast(option: str) -> bool:
    """Return whether an option means nothing to the running QEMU."""
    return option in _FAST or bool(CLOUDINIT_OPTIONS.fullmatch(option))


def can_delete(config: Mapping[str, Any], option: str) -> bool:
    """Return whether an option can be taken from a running VM at once."""
    features = hotplug_features(config)
    if is_fast(option) or option in _CGROUP:
        return True
    if re.fullmatch(r"net\d+", option):
        return "network" in features
    if re.fullmatch(r"usb\d+", option):
        return _has_usb(config, features)
    if drives.is_drive(option):
        return "disk" in features and option.startswith(("scsi", "virtio"))
    match option:
        case "hotplug":
            return not {"cpu", "memory"} & features
        case "tablet":
            return "usb" in features
        case "vcpus":
            return "cpu" in features
        case "memory":
            return "memory" in features
        case "balloon":
            return int(config.get("balloon", 1)) != 0
    return False


def can_set(world: World, config: Mapping[str, Any], option: str, value: Any) -> bool:
    """Return whether a running VM takes a value at once.

    Raises:
        PveError: The value cannot be had without a restart and Proxmox says so at once.
    """
    features = hotplug_features(config)
    if is_fast(option) or option in _CGROUP:
        return True
    if re.fullmatch(r"net\d+", option):
        return _can_set_network(world, config, option, str(value), plug="network" in features)
    if re.fullmatch(r"usb\d+", option):
        return _has_usb(config, features)
    if drives.is_drive(option):
        return _can_set_drive(world, config, option, str(value), plug="disk" in features)
    match option:
        case "hotplug":
            wanted = hotplug_features({"hotplug": value})
            return not {"cpu", "memory"} & (features | wanted)
        case "tablet":
            return "usb" in features
        case "vcpus":
            return "cpu" in features
        case "memory":
            return "memory" in features
        case "balloon":
            return bool(int(config.get("balloon", 1))) == bool(int(value))
        case "agent":
            return "agent" in config and _agent_identity(str(config["agent"])) == _agent_identity(str(value))
    return False


def _has_usb(config: Mapping[str, Any], features: frozenset[str]) -> bool:
    return "usb" in features and (
        config.get("ostype") == "l26" or str(config.get("ostype", "")) in _WINDOWS_WITH_USB
    )


def _agent_identity(text: str) -> dict[str, str]:
    """Return the options of an agent without those that only Proxmox itself looks at."""
    if not has_agent(text):
        return {}
    return {key: value for key, value in _agent_options(text).items() if key != "fstrim_cloned_disks"}


def _agent_options(text: str) -> dict[str, str]:
    options = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        options[key if equals else "enabled"] = parse_boolean(value if equals else part)
    return options


def _can_set_network(world: World, config: Mapping[str, Any], option: str, value: str, *, plug: bool) -> bool:
    if option not in config:
        return plug
    old, new = parse_network(world, str(config[option])), parse_network(world, value)
    same = all(old.get(key) == new.get(key) for key in _NIC_IDENTITY)
    return plug or (same and bool(old.get("bridge")) and bool(new.get("bridge")))


def _can_set_drive(world: World, config: Mapping[str, Any], option: str, value: str, *, plug: bool) -> bool:
    if option in ("efidisk0", "tpmstate0"):
        return False
    pluggable = plug and option.startswith(("scsi", "virtio"))
    if option not in config:
        return pluggable
    old = drives.parse_drive(world.facts, option, str(config[option]))
    new = drives.parse_drive(world.facts, option, value)
    if drives.is_cdrom(old) != drives.is_cdrom(new):
        raise PveError("hotplug problem - unable to change media type\n")
    if drives.is_cdrom(old):
        return True
    if old["file"] != new["file"]:
        return pluggable
    return all(old.get(key) == new.get(key) for key in _DISK_IDENTITY)
