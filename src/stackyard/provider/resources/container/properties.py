"""A container as the properties of its configuration on Proxmox, from the blocks that a user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.container.blocks import DEFAULTS, block, has, is_clone, known
from stackyard.provider.resources.container.texts import GIB, join, size_bytes, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["ROOT", "beginning", "defaults", "properties", "root_disk"]

ROOT = "rootfs"

Properties = dict[str, Any]


def properties(values: Object) -> Properties:
    """Return what can be changed later as well: everything but the root disk.

    A block that is left out stands for its defaults; in a clone it stands for what the source has.
    """
    given = known(values)
    found: Properties = {
        "onboot": bool(given.get("start_on_boot")),
        "protection": bool(given.get("protection")),
        "description": given.get("description") or None,
        "hookscript": given.get("hook_script_file_id") or None,
        "tags": ";".join(sorted(tag.strip() for tag in given.get("tags") or () if tag.strip())) or None,
        "env": _environment(given.get("environment_variables") or {}),
        "startup": _startup(block(given, "startup")),
        "ostype": block(given, "operating_system").get("type") or None,
    }
    for name in ("console", "cpu", "features", "memory"):
        if has(given, name) or not is_clone(given):
            found |= _SIMPLE[name](_completed(name, block(given, name)))
    found |= _initialization(block(given, "initialization"))
    found |= _networks(given)
    found |= {f"mp{i}": _mount_point(one) for i, one in enumerate(given.get("mount_point") or ())}
    found |= {f"dev{i}": _device(one) for i, one in enumerate(given.get("device_passthrough") or ())}
    return {name: value for name, value in found.items() if value is not None}


def defaults() -> Properties:
    """Return what a block that is taken out of the configuration goes back to."""
    found: Properties = {}
    for name, write in _SIMPLE.items():
        found |= write(DEFAULTS[name])
    return {name: value for name, value in found.items() if value is not None}


def beginning(values: Object) -> Properties:
    """Return what only the call that makes a container takes."""
    given = known(values)
    account = block(block(given, "initialization"), "user_account")
    disk = _completed("disk", block(given, "disk"))
    return {
        "ostemplate": block(given, "operating_system").get("template_file_id"),
        "storage": disk["datastore_id"] or None,
        ROOT: root_disk(disk, f"{disk['datastore_id']}:{disk['size']}") if disk["datastore_id"] else None,
        "unprivileged": bool(given.get("unprivileged")),
        "template": bool(given.get("template")) or None,
        "pool": given.get("pool_id") or None,
        "ssh-public-keys": "\n".join(account.get("keys") or ()) or None,
        "password": account.get("password") or None,
    }


def root_disk(disk: Mapping[str, Any], volume: str, *, size: int | None = None) -> str:
    """Return the root disk, of a volume that is there (with its size in GiB) or is to be made."""
    options = [option for option in disk.get("mount_options") or () if option]
    return join(
        (
            ("volume", volume),
            ("acl", True if disk.get("acl") else None),
            ("mountoptions", ";".join(options) or None),
            ("quota", True if disk.get("quota") else None),
            ("replicate", True if disk.get("replicate") else None),
            ("size", None if size is None else size_text(size * GIB)),
        )
    )


def _completed(name: str, given: Object) -> Object:
    set_here = {key: value for key, value in given.items() if value is not None}
    return {**DEFAULTS[name], **set_here}


def _console(console: Object) -> Properties:
    return {"console": bool(console["enabled"]), "cmode": console["type"], "tty": console["tty_count"]}


def _cpu(cpu: Object) -> Properties:
    return {
        "arch": cpu["architecture"],
        "cores": cpu["cores"],
        "cpulimit": cpu["limit"] or None,
        "cpuunits": cpu["units"] or None,
    }


def _features(features: Object) -> Properties:
    mount = ";".join(features["mount"] or ()) or None
    flags = ((name, True if features[name] else None) for name in ("fuse", "keyctl", "mknod", "nesting"))
    return {"features": join((*flags, ("mount", mount))) or None}


def _memory(memory: Object) -> Properties:
    return {"memory": memory["dedicated"], "swap": memory["swap"]}


_SIMPLE = {"console": _console, "cpu": _cpu, "features": _features, "memory": _memory}


def _environment(variables: Mapping[str, str]) -> str | None:
    return "\0".join(f"{name}={value}" for name, value in sorted(variables.items())) or None


def _startup(startup: Object) -> str | None:
    names = (("order", "order"), ("up", "up_delay"), ("down", "down_delay"))
    found = ((key, startup.get(name)) for key, name in names)
    return join((key, value if value is not None and value >= 0 else None) for key, value in found) or None


def _initialization(initialization: Object) -> Properties:
    dns = block(initialization, "dns")
    servers = " ".join(dns.get("servers") or ()) or dns.get("server") or None
    return {
        "hostname": initialization.get("hostname") or None,
        "entrypoint": initialization.get("entrypoint") or None,
        "nameserver": servers,
        "searchdomain": dns.get("domain") or None,
    }


def _networks(given: Object) -> Properties:
    return {f"net{i}": text for i, text in _network_texts(given)}


def _network_texts(given: Object) -> Iterator[tuple[int, str]]:
    addresses = block(given, "initialization").get("ip_config") or ()
    for index, nic in enumerate(given.get("network_interface") or ()):
        if nic.get("enabled") is False:
            continue
        config = addresses[index] if index < len(addresses) else {}
        ipv4, ipv6 = block(config or {}, "ipv4"), block(config or {}, "ipv6")
        rate = nic.get("rate_limit")
        yield (
            index,
            join(
                (
                    ("name", nic["name"]),
                    ("bridge", nic.get("bridge") or None),
                    ("firewall", True if nic.get("firewall") else None),
                    ("host-managed", True if nic.get("host_managed") else None),
                    ("hwaddr", nic.get("mac_address") or None),
                    ("ip", ipv4.get("address") or None),
                    ("gw", ipv4.get("gateway") or None),
                    ("ip6", ipv6.get("address") or None),
                    ("gw6", ipv6.get("gateway") or None),
                    ("mtu", nic.get("mtu") or None),
                    ("rate", f"{float(rate):g}" if rate else None),
                    ("tag", nic.get("vlan_id") or None),
                )
            ),
        )


def _mount_point(mount: Object) -> str:
    volume, size = str(mount["volume"]), str(mount.get("size") or "")
    storage, colon, name = volume.partition(":")
    is_there = bool(colon and name) or volume.startswith("/")
    if size and not is_there:
        # Proxmox makes a volume of whole GiB.
        volume = f"{storage}:{(size_bytes(size) or 0) // GIB}"
    options = [option for option in mount.get("mount_options") or () if option]
    return join(
        (
            ("volume", volume),
            ("mp", mount["path"]),
            ("acl", True if mount.get("acl") else None),
            ("backup", True if mount.get("backup") else None),
            ("mountoptions", ";".join(options) or None),
            ("quota", True if mount.get("quota") else None),
            ("replicate", False if mount.get("replicate") is False else None),
            ("ro", True if mount.get("read_only") else None),
            ("shared", True if mount.get("shared") else None),
            ("size", size if size and is_there else None),
        )
    )


def _device(device: Object) -> str:
    return join(
        (
            ("path", device["path"]),
            ("deny-write", True if device.get("deny_write") else None),
            ("gid", device.get("gid") or 0),
            ("mode", device.get("mode") or None),
            ("uid", device.get("uid") or 0),
        )
    )
