"""Resource mappings: `/cluster/mapping/{pci,usb,dir}`.

The lab has no file system on its nodes, so every directory that a mapping names is taken to be there.
"""

from __future__ import annotations

import collections
import functools
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.hardware import PCI_DEVICES, USB_DEVICES
from pvelab.server.params import properties
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import Route, route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.world import World

__all__ = ["entries_on", "index_mappings", "problem_of"]

_MAP, _NOTE = frozenset(("map",)), frozenset(("description",))
_KINDS = {
    "pci": Kind(name="pci", required=_MAP, optional=_NOTE | {"mdev", "live-migration-capable"}),
    "usb": Kind(name="usb", required=_MAP, optional=_NOTE),
    "dir": Kind(name="dir", required=_MAP, optional=_NOTE),
}
_FILES = {"pci": "pci", "usb": "usb", "dir": "directory"}
_WORDS = {"pci": "hardware", "usb": "hardware", "dir": "directory"}
_NOT_SETTINGS = frozenset(("id", "digest", "delete"))


@route("GET /cluster/mapping")
def index_mappings(_call: Call) -> Any:
    """List the kinds of mappings."""
    return [{"name": name} for name in _KINDS]


def _list(kind: str, call: Call) -> Any:
    """List the mappings that the caller may see, with what is wrong with them on a node."""
    local, node = call.world.cluster.local(), call.params.get("check-node")
    if node not in (None, "localhost", local):
        raise PveError("Wrong node to check" if kind == "usb" else f"wrong node to check - {node} != {local}")
    file = _file(call, kind)
    rows = []
    for ident, section in file.all().items():
        path = f"/mapping/{kind}/{ident}"
        if call.may(path, "Mapping.Modify", "Mapping.Use", "Mapping.Audit", any_of=True):
            row = {**section, "id": ident, "digest": file.digest}
            if node is not None:
                row["errors" if kind == "usb" else "checks"] = _checks(call, kind, ident, node)
            rows.append(row)
    return rows


def _read(kind: str, call: Call) -> Any:
    """Read one mapping."""
    file = _file(call, kind)
    found = file.get(call.params["id"])
    if found is None:
        raise PveError(f"mapping '{call.params['id']}' not found")
    return {**found, "digest": file.digest}


def _create(kind: str, call: Call) -> Any:
    """Add a mapping."""
    ident, section = call.params["id"], _check_mapping(call, kind)
    with call.world.cluster.lock_file(_lock(kind), f"create {_WORDS[kind]} mapping failed"):
        file = _file(call, kind)
        if file.get(ident) is not None:
            raise PveError(f"{kind} ID '{ident}' already defined")
        file.put(ident, section)


def _update(kind: str, call: Call) -> Any:
    """Change a mapping; its list of devices is replaced as a whole."""
    ident = call.params["id"]
    with call.world.cluster.lock_file(_lock(kind), f"update {_WORDS[kind]} mapping failed"):
        file = _file(call, kind)
        file.check_digest(call.params.get("digest"))
        old = file.get(ident)
        if old is None:
            raise PveError(f"{kind} ID '{ident}' does not exist")
        given = _check_mapping(call, kind)
        kept = _KINDS[kind].without(old, split_list(call.params.get("delete", "")), given)
        file.put(ident, {**kept, **given})


def _delete(kind: str, call: Call) -> Any:
    """Remove a mapping, if it is there."""
    with call.world.cluster.lock_file(_lock(kind), f"delete {kind} mapping failed"):
        _file(call, kind).remove(call.params["id"])


def _routes(kind: str) -> tuple[Route, ...]:
    handlers = {
        f"GET /cluster/mapping/{kind}": _list,
        f"POST /cluster/mapping/{kind}": _create,
        f"GET /cluster/mapping/{kind}/{{id}}": _read,
        f"PUT /cluster/mapping/{kind}/{{id}}": _update,
        f"DELETE /cluster/mapping/{kind}/{{id}}": _delete,
    }
    return tuple(route(name)(functools.partial(handler, kind)) for name, handler in handlers.items())


list_pci, create_pci, read_pci, update_pci, delete_pci = _routes("pci")
list_usb, create_usb, read_usb, update_usb, delete_usb = _routes("usb")
list_dir, create_dir, read_dir, update_dir, delete_dir = _routes("dir")


def _file(call: Call, kind: str) -> SectionFile:
    return SectionFile(call.store, f"mapping_{kind}")


def _lock(kind: str) -> str:
    return f"file-mapping_{_FILES[kind]}_cfg"


def _check_mapping(call: Call, kind: str) -> dict[str, Any]:
    given = {key: value for key, value in call.params.items() if key not in _NOT_SETTINGS}
    section = _KINDS[kind].validate(given, create=True)
    if kind == "dir":
        counts = collections.Counter(entry["node"] for entry in _entries(call.world, kind, section["map"]))
        for node, count in counts.items():
            if count > 1:
                raise PveError(f"Node '{node}' is specified {count} times.")
    return section


def entries_on(world: World, kind: str, ident: str, node: str) -> list[Mapping[str, Any]] | None:
    """Return what a mapping represents on a node; None if there is no such mapping.

    Args:
        world: The lab.
        kind: `pci`, `usb` or `dir`.
        ident: The mapping.
        node: The node.
    """
    section = SectionFile(world.store, f"mapping_{kind}").get(ident)
    if section is None:
        return None
    return [entry for entry in _entries(world, kind, section["map"]) if entry["node"] == node]


def problem_of(world: World, kind: str, ident: str, entry: Mapping[str, Any]) -> str | None:
    """Return what of an entry of a mapping is not as on the node, None if all is."""
    section = SectionFile(world.store, f"mapping_{kind}").all()[ident]
    return {"pci": _pci_problem, "usb": _usb_problem, "dir": _no_problem}[kind](ident, entry, section)


def _entries(world: World, kind: str, texts: list[str]) -> list[Mapping[str, Any]]:
    schema = world.facts.schema(f"POST /cluster/mapping/{kind}", "map")["items"]["format"]
    return [properties.parse(schema, text) for text in texts]


def _checks(call: Call, kind: str, ident: str, node: str) -> list[dict[str, str]]:
    entries = entries_on(call.world, kind, ident, node)
    if not entries:
        return [{"severity": "warning", "message": f"No mapping for node {node}."}]
    problems = []
    for entry in entries:
        problem = problem_of(call.world, kind, ident, entry)
        if problem is not None:
            problems.append({"severity": "error", "message": f"Invalid configuration: {problem}\n"})
    return problems


def _no_problem(_ident: str, _entry: Mapping[str, Any], _section: Mapping[str, Any]) -> str | None:
    return None


def _pci_problem(ident: str, entry: Mapping[str, Any], section: Mapping[str, Any]) -> str | None:
    """Return what of a mapped device is not as on the node, None if all is."""
    for number, path in enumerate(str(entry["path"]).split(";")):
        place = path if "." in path else f"{path}.0"
        device = next((device for device in PCI_DEVICES if device["id"] == place), None)
        if device is None:
            return f"pci device '{place}' not found"
        expected: dict[str, Any] = {
            "id": f"{device['vendor'][2:]}:{device['device'][2:]}",
            "mdev": 0,
            "subsystem-id": f"{device['subsystem_vendor'][2:]}:{device['subsystem_device'][2:]}",
        }
        if number == 0:
            expected["iommugroup"] = device["iommugroup"]
        configured = {**entry, "mdev": int(section.get("mdev", 0))}
        for key, value in sorted(expected.items()):
            if key not in configured:
                return f"missing expected property '{key}' for device '{place}'"
            if str(configured[key]) != str(value):
                return f"'{key}' does not match for '{ident}' ({value} != {configured[key]})"
    return None


def _usb_problem(ident: str, entry: Mapping[str, Any], _section: Mapping[str, Any]) -> str | None:
    path, wanted = entry.get("path"), entry["id"]
    for device in USB_DEVICES:
        real = f"{device['vendid']}:{device['prodid']}"
        if path is None and real == wanted:
            return None
        if path is not None and f"{device['busnum']}-{device.get('usbpath')}" == path:
            return None if real == wanted else f"'id' does not match for '{ident}' ({real} != {wanted})"
    return f"usb device '{path or wanted}' not found"
