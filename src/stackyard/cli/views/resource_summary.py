"""What matters of a resource in one line, from the values of a plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.guard.subjects import name_in, node_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.engine.changes import Change

__all__ = ["hide_url_secrets", "list_strings", "summarise", "summarise_disks"]

_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/?#\s@]*@")
_QUERY = re.compile(r"\b[a-z][a-z0-9+.-]*://[^?#\s'\"]+\?[^#\s'\"]+")
_QUERY_VALUE = re.compile(r"([?&][^=&\s]*=)[^&#\s]*")
_MOST_FACTS = 5
# Attributes that a reader of a plan does not need: the line above has the name and the node.
_SAID_ELSEWHERE = ("id", "node_name", "file_name", "name", "pool_id", "overwrite", "verify")


def summarise(change: Change) -> str:
    """Return the attributes that a reader of a plan looks for; empty where there are none."""
    values = change.after or change.before or {}
    kind = short_kind(change)
    if kind not in _FACTS:
        # The line above has the name and the node.
        said = {name_in(kind, values), node_of(change)}
        values = {key: one for key, one in values.items() if not isinstance(one, str) or one not in said}
    return ", ".join(_FACTS.get(kind, _others)(values))


def summarise_disks(change: Change) -> str:
    """Return the disks that a guest has."""
    return ", ".join(_disks(change.before or {}, with_source=False))


def hide_url_secrets(text: str) -> str:
    """Return a text without the logins and the values of queries in its URLs, which may be signatures."""
    text = _LOGIN.sub(r"\1***@", text)
    return _QUERY.sub(lambda found: _QUERY_VALUE.sub(r"\1***", found[0]), text)


def list_strings(value: Any) -> Iterator[str]:
    """Give every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from list_strings(one)


def _vm(values: Mapping[str, Any]) -> Iterator[str]:
    cpu = _block(values, "cpu")
    cores, sockets = _number(cpu, "cores"), _number(cpu, "sockets")
    if cores:
        yield _count(cores * (sockets or 1), "core")
    yield from _memory(values)
    clone = _block(values, "clone")
    if clone.get("vm_id") is not None:
        yield f"clone of {clone['vm_id']}"
    yield from _disks(values)
    yield from _networks(values, "network_device")
    yield from _common(values)


def _container(values: Mapping[str, Any]) -> Iterator[str]:
    if cores := _number(_block(values, "cpu"), "cores"):
        yield _count(cores, "core")
    yield from _memory(values)
    template = _block(values, "operating_system").get("template_file_id")
    made_from = f" from {_file_name(template)}" if isinstance(template, str) and template else ""
    for disk in _blocks(values, "disk"):
        yield f"{_size(disk)}{made_from}"
    for mount in _blocks(values, "mount_point"):
        if isinstance(mount.get("path"), str):
            yield f"{mount['path']} {mount.get('size') or ''} on {mount.get('volume')}".replace("  ", " ")
    yield from _networks(values, "network_interface")
    yield from _common(values)


def _common(values: Mapping[str, Any]) -> Iterator[str]:
    for config in _blocks(_block(values, "initialization"), "ip_config"):
        for family in ("ipv4", "ipv6"):
            address = _block(config, family).get("address")
            if isinstance(address, str) and address:
                yield address
    if isinstance(values.get("pool_id"), str) and values["pool_id"]:
        yield f"pool {values['pool_id']}"
    tags = [tag for tag in values.get("tags") or () if isinstance(tag, str)]
    if tags:
        yield f"tags {' '.join(tags)}"
    if values.get("template") is True:
        yield "a template"
    elif values.get("started") is False:
        yield "not started"


def _memory(values: Mapping[str, Any]) -> Iterator[str]:
    if size := _number(_block(values, "memory"), "dedicated"):
        yield f"{size // 1024} GiB memory" if size % 1024 == 0 else f"{size} MiB memory"


def _disks(values: Mapping[str, Any], *, with_source: bool = True) -> Iterator[str]:
    for disk in _blocks(values, "disk"):
        source = (disk.get("import_from") or disk.get("file_id")) if with_source else None
        made_from = f" from {_file_name(source)}" if isinstance(source, str) and source else ""
        interface = disk.get("interface")
        name = f"{interface} " if isinstance(interface, str) and interface else ""
        yield f"{name}{_size(disk)}{made_from}"


def _size(disk: Mapping[str, Any]) -> str:
    size = disk.get("size")
    where = disk.get("datastore_id")
    amount = f"{size} GiB" if isinstance(size, int) else "disk"
    return f"{amount} on {where}" if isinstance(where, str) and where else amount


def _networks(values: Mapping[str, Any], block: str) -> Iterator[str]:
    for network in _blocks(values, block):
        bridge = network.get("bridge")
        if isinstance(bridge, str) and bridge:
            vlan = _number(network, "vlan_id")
            yield f"{bridge} VLAN {vlan}" if vlan else bridge


def _download(values: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(values.get("url"), str):
        yield f"from {hide_url_secrets(values['url'])}"
    if isinstance(values.get("datastore_id"), str):
        yield f"to {values['datastore_id']} on {values.get('node_name')}"


def _others(values: Mapping[str, Any]) -> Iterator[str]:
    """Give the plain attributes that are set, as a configuration writes them."""
    told = 0
    for name, value in sorted(values.items()):
        is_plain = isinstance(value, str | int) and not isinstance(value, bool)
        if name in _SAID_ELSEWHERE or not is_plain or value in ("", 0) or name.startswith("timeout"):
            continue
        yield f"{name} {value}"
        told += 1
        if told == _MOST_FACTS:
            return


def _blocks(values: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _block(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = _blocks(values, name)
    return found[0] if found else {}


def _number(values: Mapping[str, Any], name: str) -> int:
    found = values.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _file_name(volume: str) -> str:
    return volume.rpartition("/")[2]


def _nothing(values: Mapping[str, Any]) -> Iterator[str]:
    """Give nothing: the name, or the guest that uses a file, says more."""
    del values
    return iter(())


_FACTS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "vm": _vm,
    "container": _container,
    "download_file": _download,
    "file": _nothing,
    # Its name says all of it.
    "acl": _nothing,
}
