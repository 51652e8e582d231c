"""A container as the properties of its configuration on Proxmox, from the blocks that a user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.container import (
    BASICS,
    CONSOLE,
    CPU,
    DEVICE,
    FEATURES,
    INTERFACE,
    MEMORY,
    MOUNT_POINT,
    ROOT_DISK,
)
from stackyard.fields.guest import DNS, STARTUP, join_tags
from stackyard.fields.properties import GIB, parse_size, render, render_size
from stackyard.provider.guests.addresses import write_ip_config
from stackyard.provider.resources.container.blocks import DEFAULTS, block, drop_unknown, has, is_clone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["ROOT", "defaults", "properties", "render_creation", "root_disk"]

ROOT = "rootfs"

Properties = dict[str, Any]


def properties(values: Object) -> Properties:
    """Return what can be changed later as well: everything but the root disk.

    A block that is left out stands for its defaults; in a clone it stands for what the source has.
    """
    given = drop_unknown(values)
    found: Properties = {
        **BASICS.write(given),
        "tags": join_tags(given.get("tags")),
        "env": _environment(given.get("environment_variables") or {}),
        "startup": STARTUP.write_text(block(given, "startup")) or None,
        "ostype": block(given, "operating_system").get("type") or None,
    }
    for name in ("console", "cpu", "features", "memory"):
        if has(given, name) or not is_clone(given):
            found |= _SIMPLE[name](_complete(name, block(given, name)))
    found |= _initialization(block(given, "initialization"))
    found |= _networks(given)
    found |= {f"mp{i}": _mount_point(one) for i, one in enumerate(given.get("mount_point") or ())}
    found |= {
        f"dev{i}": DEVICE.write_text(one) for i, one in enumerate(given.get("device_passthrough") or ())
    }
    return {name: value for name, value in found.items() if value is not None}


def defaults() -> Properties:
    """Return what a block that is taken out of the configuration goes back to."""
    found: Properties = {}
    for name, write in _SIMPLE.items():
        found |= write(DEFAULTS[name])
    return {name: value for name, value in found.items() if value is not None}


def render_creation(values: Object) -> Properties:
    """Return what only the call that makes a container takes."""
    given = drop_unknown(values)
    account = block(block(given, "initialization"), "user_account")
    disk = _complete("disk", block(given, "disk"))
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
    made = {
        "volume": volume,
        **ROOT_DISK.write(disk),
        "size": None if size is None else render_size(size * GIB),
    }
    return render(made)


def _complete(name: str, given: Object) -> Object:
    set_here = {key: value for key, value in given.items() if value is not None}
    return {**DEFAULTS[name], **set_here}


_SIMPLE: Mapping[str, Callable[[Object], Properties]] = {
    "console": CONSOLE.write,
    "cpu": CPU.write,
    "features": lambda features: {"features": FEATURES.write_text(features) or None},
    "memory": MEMORY.write,
}


def _environment(variables: Mapping[str, str]) -> str | None:
    return "\0".join(f"{name}={value}" for name, value in sorted(variables.items())) or None


def _initialization(initialization: Object) -> Properties:
    dns = block(initialization, "dns")
    found = DNS.write(dns)
    return {
        "hostname": initialization.get("hostname") or None,
        "entrypoint": initialization.get("entrypoint") or None,
        **found,
        "nameserver": found["nameserver"] or dns.get("server") or None,
    }


def _networks(given: Object) -> Properties:
    return {f"net{i}": text for i, text in _network_texts(given)}


def _network_texts(given: Object) -> Iterator[tuple[int, str]]:
    addresses = block(given, "initialization").get("ip_config") or ()
    for index, nic in enumerate(given.get("network_interface") or ()):
        if nic.get("enabled") is False:
            continue
        config = addresses[index] if index < len(addresses) else {}
        yield index, INTERFACE.write_text({**nic, **write_ip_config(config or {})})


def _mount_point(mount: Object) -> str:
    volume, size = str(mount["volume"]), str(mount.get("size") or "")
    storage, colon, name = volume.partition(":")
    is_there = bool(colon and name) or volume.startswith("/")
    if size and not is_there:
        # Proxmox makes a volume of whole GiB.
        volume = f"{storage}:{(parse_size(size) or 0) // GIB}"
    there = {"volume": volume, **MOUNT_POINT.write(mount), "size": size if size and is_there else None}
    return render(there)
