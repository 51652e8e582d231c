"""Options of a container in the form that its configuration keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.networks import check_network, is_network, parse_network
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.storage.volume_names import parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["check_hookscript", "format_description", "is_known", "normalize", "unique_tags"]

# The weight of a container under cgroup v2.
_LARGEST_CPU_UNITS = 10000
_KNOWN_AT = "PUT /nodes/{node}/lxc/{vmid}/config"


def normalize(world: World, node: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the configuration keeps them; what asks for a volume is left as it is.

    Raises:
        PveError: A value cannot be.
    """
    settings: dict[str, Any] = {}
    for key in sorted(values):
        settings[key] = _normalize(world, node, key, values[key])
    return settings


def format_description(text: str) -> str:
    """Return a description as it comes back from the comment lines of the file: every line ends."""
    return "".join(f"{line}\n" for line in text.rstrip("\n").split("\n")) if text else ""


def unique_tags(world: World, text: str) -> str:
    """Return tags each once, in order and case as the cluster wants them."""
    options = world.store.get("cluster", "options") or {}
    style = str(options.get("tag-style", ""))
    tags = split_list(text)
    if "case-sensitive=1" not in style:
        tags = [tag.lower() for tag in tags]
    if "ordering=config" not in style:
        tags = sorted(tags, key=str.lower)
    return ";".join(dict.fromkeys(tags))


def is_known(world: World, name: str) -> bool:
    """Return whether there is an option of that name."""
    known = world.facts[_KNOWN_AT].parameters
    return name in known or re.sub(r"\d+$", "[n]", name) in known


def _normalize(world: World, node: str, key: str, value: Any) -> Any:
    if mountpoints.is_mount_point(key):
        _check_mount_point(world, key, str(value))
    elif is_network(key):
        check_network(world, node, key, parse_network(world, str(value)))
    elif re.fullmatch(r"dev\d+", key) and re.search(r"(?:^|,)(?:path=)?/dev/", str(value)) is None:
        raise PveError(f"Path is not defined for passthrough device {key}")
    elif key == "hookscript":
        check_hookscript(world, node, str(value))
    elif key == "unprivileged":
        raise PveError(f"unable to modify read-only option: '{key}'")
    elif key == "tags":
        return unique_tags(world, str(value))
    elif key in ("nameserver", "searchdomain"):
        return " ".join(split_list(str(value)))
    elif key == "cpulimit":
        # Proxmox reads it back from its file as text.
        return str(value)
    elif key == "cpuunits":
        return min(int(value), _LARGEST_CPU_UNITS)
    elif key == "description":
        return format_description(str(value))
    return value


def _check_mount_point(world: World, key: str, text: str) -> None:
    volume = str(mountpoints.parse_mount_point(world.facts, key, text)["volume"])
    if mountpoints.mount_type(volume) is not MountType.VOLUME:
        return
    storage, _ = parse_volume_id(volume)
    config = world.storages.config(storage)
    if "rootdir" not in world.storages.content_types(config):
        raise PveError(f"storage '{storage}' does not allow content type 'rootdir' (Container)")


def check_hookscript(world: World, node: str, volid: str) -> None:
    """Refuse a hook script that is not a snippet which exists.

    Raises:
        PveError: It is something else, or not there.
    """
    storage, name = parse_volume_id(volid)
    if parse_name(world.storages.config(storage), name).content != "snippets":
        raise PveError(f"'{volid}' is not in the snippets directory")
    if world.volumes.find(volid, node) is None:
        raise PveError(f"script '{volid}' does not exist")
