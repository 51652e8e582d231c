"""Files of a node that are not in a storage: who it is, its network, and what Proxmox keeps under /etc/pve.

The file of a guest is printed from its configuration, and what is written to it becomes the configuration.
The interfaces of a node are in two files, the one in force and the one that waits for a reload; beside them
there may be others, such as a copy. Units of systemd are in a folder of their own.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.bridges import INTERFACES
from pvelab.world.guests.text import comment_lines, config_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "OS_RELEASE",
    "UNITS",
    "guest_file",
    "is_kept_file",
    "read_system_file",
    "remove_kept_file",
    "system_files",
    "write_system_file",
]

OS_RELEASE = """PRETTY_NAME="Debian GNU/Linux 13 (trixie)"
NAME="Debian GNU/Linux"
VERSION_ID="13"
VERSION="13 (trixie)"
VERSION_CODENAME=trixie
ID=debian
"""

_KINDS = {"qemu-server": "qemu", "lxc": "lxc"}
_FOLDERS = {kind: folder for folder, kind in _KINDS.items()}
_GUEST = re.compile(r"/etc/pve/(?:nodes/(?P<node>[^/]+)/)?(?P<folder>qemu-server|lxc)/(?P<vmid>\d+)\.conf")
_AUTHORIZED = ("/root/.ssh/authorized_keys", "/etc/pve/priv/authorized_keys")
# Whether guests of this node can run guests themselves.
_NESTED = "/sys/module/kvm_intel/parameters/nested"
_METRIC_TOKEN = re.compile(r"/etc/pve/priv/metricserver/([^/]+)\.pw")
UNITS = "/etc/systemd/system"
_KEPT = re.compile(rf"/etc/network/[A-Za-z0-9._-]+|{UNITS}/[A-Za-z0-9:._@-]+\.service")
# The interfaces in force, and those that wait for a reload: where each is in the document of a node.
_INTERFACES = {"/etc/network/interfaces": "text", "/etc/network/interfaces.new": "new"}
_TIMES = {"text": "time", "new": "new_time"}
_NETWORK_FILES = "network_files"
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*):\s*(.*?)\s*")


def system_files(world: World, node: str) -> list[str]:
    """Return the paths of all such files of a node."""
    found = ["/etc/hostname", "/etc/os-release", _NESTED, *_AUTHORIZED]
    found += [path for path, field in _INTERFACES.items() if world.store.items(INTERFACES)[node].get(field)]
    found += [
        str(kept["path"]) for kept in world.store.items(_NETWORK_FILES).values() if kept["node"] == node
    ]
    found += [f"/etc/pve/priv/metricserver/{name}.pw" for name in world.store.items("metric_tokens")]
    for guest in world.guests.all().values():
        folder = _FOLDERS[str(guest["type"])]
        found.append(f"/etc/pve/nodes/{guest['node']}/{folder}/{guest['vmid']}.conf")
        if guest["node"] == node:
            found.append(f"/etc/pve/{folder}/{guest['vmid']}.conf")
    return found


def read_system_file(world: World, node: str, path: str) -> str | None:
    """Return the text of a file, None if there is no such file."""
    match path:
        case "/etc/hostname":
            return f"{node}\n"
        case "/etc/os-release":
            return OS_RELEASE
        case _ if path == _NESTED:
            # A node can be planted without, as machines are sold.
            return "Y\n" if world.cluster.nodes()[node].get("nested", True) else "N\n"
        case _ if path in _AUTHORIZED:
            kept = world.store.get("authorized_keys", "root") or {"lines": []}
            return "".join(f"{line}\n" for line in kept["lines"])
    if is_kept_file(path):
        return _read_network_file(world, node, path)
    if token := _METRIC_TOKEN.fullmatch(path):
        secret = world.store.get("metric_tokens", token[1])
        return None if secret is None else str(secret["token"])
    guest = _guest_at(world, node, path)
    return None if guest is None else guest_file(guest)


def write_system_file(world: World, node: str, path: str, text: str) -> None:
    """Replace the text of a file, in the running transaction.

    Raises:
        PveError: It cannot be written, or has lines that Proxmox would not read.
    """
    if path in _AUTHORIZED:
        world.store.put("authorized_keys", "root", {"lines": text.splitlines()})
        return
    if path in _INTERFACES:
        field = _INTERFACES[path]
        changed = {field: text, _TIMES[field]: world.clock.now()}
        world.store.put(INTERFACES, node, {**world.store.items(INTERFACES)[node], **changed})
        return
    if is_kept_file(path):
        world.store.put(_NETWORK_FILES, f"{node}|{path}", {"node": node, "path": path, "text": text})
        return
    guest = _guest_at(world, node, path)
    if guest is None:
        raise PveError("Permission denied")
    world.cluster.require_writable(path.removeprefix("/etc/pve/"))
    world.guests.update(guest, config=_parse_guest_file(guest, text))


def is_kept_file(path: str) -> bool:
    """Return whether a path is in the folder of the network, or that of a unit of systemd."""
    return _KEPT.fullmatch(path) is not None


def _read_network_file(world: World, node: str, path: str) -> str | None:
    if path in _INTERFACES:
        return world.store.items(INTERFACES)[node].get(_INTERFACES[path])
    kept = world.store.get(_NETWORK_FILES, f"{node}|{path}")
    return None if kept is None else str(kept["text"])


def remove_kept_file(world: World, node: str, path: str) -> None:
    """Remove a file of the network's folder or a unit, in the running transaction."""
    field = _INTERFACES.get(path)
    if field is None:
        world.store.delete(_NETWORK_FILES, f"{node}|{path}")
        return
    # Without a file there are no interfaces, once it is read again.
    left = {key: value for key, value in world.store.items(INTERFACES)[node].items() if key != field}
    world.store.put(INTERFACES, node, {"text": "", **left})


def guest_file(guest: Document) -> str:
    """Return the configuration of a guest as Proxmox keeps it in its file."""
    sections = ["".join(f"{line}\n" for line in config_lines(guest["config"]))]
    if guest["pending"] or guest["pending_delete"]:
        pending = dict(guest["pending"])
        if guest["pending_delete"]:
            pending["delete"] = ",".join(guest["pending_delete"])
        sections.append("".join(f"{line}\n" for line in ("[PENDING]", *config_lines(pending))))
    for name, snapshot in guest["snapshots"].items():
        sections.append(
            "".join(f"{line}\n" for line in (f"[{name}]", *config_lines(snapshot.get("config", {}))))
        )
    return "\n".join(sections)


def _guest_at(world: World, node: str, path: str) -> Document | None:
    found = _GUEST.fullmatch(path)
    guest = world.guests.get(found["vmid"]) if found else None
    if found is None or guest is None or guest["type"] != _KINDS[found["folder"]]:
        return None
    return guest if guest["node"] == (found["node"] or node) else None


def _parse_guest_file(guest: Document, text: str) -> dict[str, Any]:
    """Read the first section of a guest's file; what is there as before keeps its type."""
    before: Mapping[str, Any] = guest["config"]
    comment: list[str] = []
    raw: list[list[str]] = []
    config: dict[str, Any] = {}
    for line in text.partition("\n[")[0].splitlines():
        found = _LINE.fullmatch(line)
        if line.startswith("#"):
            comment.append(line)
        elif found and found[1].startswith("lxc."):
            raw.append([found[1], found[2]])
        elif found:
            known = before.get(found[1])
            config[found[1]] = known if str(known) == found[2] else _convert_value(known, found[2])
        elif line.strip():
            raise PveError(f"unable to parse line: {line}")
    if comment:
        is_same = comment == comment_lines(before)
        unquoted = "\n".join(urllib.parse.unquote(line[1:]) for line in comment)
        config["description"] = before["description"] if is_same else unquoted
    if raw:
        config["lxc"] = raw
    return config


def _convert_value(known: Any, text: str) -> Any:
    """Return a value as the configuration holds it: a number where a number was."""
    return int(text) if isinstance(known, int) and text.lstrip("-").isdecimal() else text
