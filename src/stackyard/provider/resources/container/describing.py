"""The configuration of a container on Proxmox as the attributes and blocks that stand for it.

What a state holds depends on what it held before, as in the original: a block that is left out and has its
defaults stays out, and of a clone only that is described which somebody wrote down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.container.blocks import DEFAULTS, block, has, is_clone
from stackyard.provider.resources.container.networks import addresses, interfaces
from stackyard.provider.resources.container.texts import (
    GIB,
    indexed,
    is_on,
    listed,
    number,
    size_bytes,
    split,
)

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
        "description": config.get("description") or "",
        "hook_script_file_id": config.get("hookscript") or "",
        "protection": is_on(config, "protection"),
        "start_on_boot": is_on(config, "onboot"),
        "tags": sorted(tag for tag in _words(config.get("tags")) if tag),
        "template": is_on(config, "template"),
        "unprivileged": is_on(config, "unprivileged"),
    }
    if is_clone(state):
        # What the source had counts only where the configuration says something of its own.
        inherited = ("description", "hook_script_file_id", "tags", "template", "unprivileged")
        found = {name: value for name, value in found.items() if name not in inherited or state.get(name)}
    found["environment_variables"] = _environment(str(config.get("env") or ""))
    found["idmap"] = id_maps(config)
    return found


def _words(text: Any) -> list[str]:
    return [word.strip() for word in str(text or "").replace(",", ";").split(";")]


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
        "mount_point": [_mount_point(text) for _, text in indexed(config, "mp")],
        "device_passthrough": [_device(text) for _, text in indexed(config, "dev")],
        "network_interface": interfaces(config, state),
    }
    found |= {name: value for name, value in lists.items() if not is_clone(state) or has(state, name)}
    found |= _disk(config, state) | {"startup": _startup(config)}
    return found


def _console(config: Config) -> Object:
    return {
        "enabled": is_on(config, "console", default=True),
        "tty_count": number(config.get("tty"), 2),
        "type": config.get("cmode") or "tty",
    }


def _cpu(config: Config) -> Object:
    return {
        "architecture": config.get("arch") or "amd64",
        "cores": number(config.get("cores"), 1),
        "limit": number(config.get("cpulimit")),
        "units": number(config.get("cpuunits")),
    }


def _features(config: Config) -> Object:
    parts = split(str(config.get("features") or ""), "")
    flags: Object = {name: is_on(parts, name) for name in ("fuse", "keyctl", "mknod", "nesting")}
    return {**flags, "mount": listed(parts, "mount")}


def _memory(config: Config) -> Object:
    return {"dedicated": number(config.get("memory")), "swap": number(config.get("swap"))}


_SINGLE: Mapping[str, Callable[[Config], Object]] = {
    "console": _console,
    "cpu": _cpu,
    "features": _features,
    "memory": _memory,
}


def _disk(config: Config, state: Object) -> Object:
    if is_clone(state) and not has(state, "disk"):
        return {}
    parts = split(str(config.get("rootfs") or ""), "volume")
    volume = parts.get("volume", "")
    size = (size_bytes(parts.get("size", "")) or 0) // GIB
    known, standard = block(state, "disk"), DEFAULTS["disk"]["size"]
    if is_clone(state) and known.get("size") == standard:
        # Nobody asked for another size than that of the source.
        size = standard
    options = listed(parts, "mountoptions")
    if sorted(options) == sorted(known.get("mount_options") or ()):
        options = list(known.get("mount_options") or ())
    return {
        "disk": [
            {
                "acl": is_on(parts, "acl"),
                "datastore_id": volume.partition(":")[0],
                "mount_options": options,
                "path_in_datastore": volume,
                "quota": is_on(parts, "quota"),
                "replicate": is_on(parts, "replicate"),
                "size": size,
            }
        ]
    }


def _startup(config: Config) -> list[Object]:
    if not config.get("startup"):
        return []
    parts = split(str(config["startup"]), "order")
    names = (("order", "order"), ("up_delay", "up"), ("down_delay", "down"))
    return [{name: number(parts.get(key), -1) for name, key in names}]


def _mount_point(text: str) -> Object:
    parts = split(text, "volume")
    volume = parts.get("volume", "")
    return {
        "acl": is_on(parts, "acl"),
        "backup": is_on(parts, "backup"),
        "mount_options": listed(parts, "mountoptions"),
        "path": parts.get("mp", ""),
        "path_in_datastore": volume,
        "quota": is_on(parts, "quota"),
        "read_only": is_on(parts, "ro"),
        "replicate": is_on(parts, "replicate", default=True),
        "shared": is_on(parts, "shared"),
        "size": parts.get("size", ""),
        "volume": volume,
    }


def _device(text: str) -> Object:
    parts = split(text, "path")
    return {
        "deny_write": is_on(parts, "deny-write"),
        "gid": number(parts.get("gid")),
        "mode": parts.get("mode") or "0660",
        "path": parts.get("path", ""),
        "uid": number(parts.get("uid")),
    }


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
    domain, servers = config.get("searchdomain"), config.get("nameserver")
    if domain is None and servers is None:
        return []
    found: Object = {"domain": domain or "", "server": "", "servers": []}
    if servers is not None and known.get("server"):
        found["server"] = str(servers)
    elif servers is not None:
        found["servers"] = str(servers).split()
    return [found]


def _operating_system(config: Config, state: Object) -> list[Object]:
    known, kind = block(state, "operating_system"), config.get("ostype") or ""
    if not has(state, "operating_system") and (is_clone(state) or kind == "unmanaged"):
        return []
    return [{"type": kind, "template_file_id": known.get("template_file_id")}]
