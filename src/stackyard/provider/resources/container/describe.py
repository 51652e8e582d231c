"""The configuration of a container on Proxmox as the attributes and blocks that stand for it.

What a state holds depends on what it held before, as in the original: a block that is left out and has its
defaults stays out, and of a clone only that is described which somebody wrote down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stackyard.fields.container import (
    BASICS,
    CONSOLE,
    CPU,
    DEVICE,
    FEATURES,
    MEMORY,
    MOUNT_POINT,
    ROOT_DISK,
)
from stackyard.fields.guest import DNS, STARTUP, split_tags
from stackyard.fields.properties import GIB, flag, list_numbered, parse, parse_size
from stackyard.provider.resources.container.blocks import DEFAULTS, block, has, is_clone
from stackyard.provider.resources.container.networks import addresses, interfaces

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = ["describe", "id_maps"]

Config = Mapping[str, Any]


def describe(config: Config, state: Object) -> Object:
    """Return a state brought up to date with a configuration."""
    described = {**state}
    described |= _blocks(config, state)
    described |= _attributes(config, state)
    described["initialization"] = _initialization(config, state)
    described["operating_system"] = _operating_system(config, state)
    return described


def _attributes(config: Config, state: Object) -> Object:
    found: Object = {
        **BASICS.read(config),
        "tags": sorted(split_tags(config.get("tags"))),
        "template": flag(config.get("template")),
        "unprivileged": flag(config.get("unprivileged")),
    }
    if is_clone(state):
        # What the source had counts only where the configuration says something of its own.
        inherited = ("description", "hook_script_file_id", "tags", "template", "unprivileged")
        found = {name: value for name, value in found.items() if name not in inherited or state.get(name)}
    found["environment_variables"] = _environment(str(config.get("env") or ""))
    found["idmap"] = id_maps(config)
    return found


def _environment(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split("\0") if "=" in part)
    return {name: value for name, _, value in pairs}


def id_maps(config: Config) -> list[Object]:
    """Return the maps of user and group ids."""
    kinds = {"u": "uid", "g": "gid"}
    lines = [str(value).split() for name, value in config.get("lxc") or () if name == "lxc.idmap"]
    return [
        {
            "type": kinds.get(one[0], one[0]),
            "container_id": int(one[1]),
            "host_id": int(one[2]),
            "size": int(one[3]),
        }
        for one in lines
        if len(one) == 4
    ]


def _blocks(config: Config, state: Object) -> Object:
    found: Object = {}
    for name, read in _SINGLE.items():
        value, defaults = read(config), DEFAULTS[name]
        is_default = all(value.get(key) == default for key, default in defaults.items())
        if has(state, name) or (not is_clone(state) and not is_default):
            found[name] = [value]
    lists: dict[str, list[Object]] = {
        "mount_point": [_mount_point(text) for _, text in list_numbered(config, "mp")],
        "device_passthrough": [DEVICE.read_text(text) for _, text in list_numbered(config, "dev")],
        "network_interface": interfaces(config, state),
    }
    found |= {name: value for name, value in lists.items() if not is_clone(state) or has(state, name)}
    found |= _disk(config, state) | {
        "startup": [STARTUP.read_text(config["startup"])] if config.get("startup") else []
    }
    return found


_SINGLE: Mapping[str, Callable[[Config], Object]] = {
    "console": CONSOLE.read,
    "cpu": CPU.read,
    "features": lambda config: FEATURES.read_text(config.get("features") or ""),
    "memory": MEMORY.read,
}


def _disk(config: Config, state: Object) -> Object:
    if is_clone(state) and not has(state, "disk"):
        return {}
    parts = parse(str(config.get("rootfs") or ""), "volume")
    volume = parts.get("volume", "")
    size = (parse_size(parts.get("size", "")) or 0) // GIB
    known, standard = block(state, "disk"), DEFAULTS["disk"]["size"]
    if is_clone(state) and known.get("size") == standard:
        # Nobody asked for another size than that of the source.
        size = standard
    place = {"datastore_id": volume.partition(":")[0], "path_in_datastore": volume, "size": size}
    found = {**ROOT_DISK.read(parts), **place}
    if sorted(found["mount_options"]) == sorted(known.get("mount_options") or ()):
        found["mount_options"] = list(known.get("mount_options") or ())
    return {"disk": [found]}


def _mount_point(text: str) -> Object:
    parts = parse(text, "volume")
    volume = parts.get("volume", "")
    place = {"path_in_datastore": volume, "size": parts.get("size", ""), "volume": volume}
    return {**MOUNT_POINT.read(parts), **place}


def _initialization(config: Config, state: Object) -> list[Object]:
    known = block(state, "initialization")
    if is_clone(state) and not known:
        return list(state.get("initialization") or ())
    found: Object = {
        "hostname": config.get("hostname") or "",
        "entrypoint": config.get("entrypoint") or "",
        "dns": _dns(config, block(known, "dns")),
        "ip_config": addresses(config, state),
        # Proxmox forgets them as soon as they are set.
        "user_account": known.get("user_account") or [],
    }
    if is_clone(state):
        found |= {name: [] for name in ("dns", "ip_config") if not has(known, name)}
    return [found]


def _dns(config: Config, known: Object) -> list[Object]:
    servers = config.get("nameserver")
    if config.get("searchdomain") is None and servers is None:
        return []
    found: Object = {**DNS.read(config), "server": ""}
    if servers is not None and known.get("server"):
        found |= {"server": str(servers), "servers": []}
    return [found]


def _operating_system(config: Config, state: Object) -> list[Object]:
    known, kind = block(state, "operating_system"), config.get("ostype") or ""
    if not has(state, "operating_system") and (is_clone(state) or kind == "unmanaged"):
        return []
    return [{"type": kind, "template_file_id": known.get("template_file_id")}]
