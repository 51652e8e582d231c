"""One object of the double, with the managers of its fields, and how requests change it."""

from __future__ import annotations

import copy
import datetime
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes import problems
from pvelab.kubernetes.fields import (
    Paths,
    Shape,
    format_path,
    get_at,
    list_paths,
    merge,
    remove_at,
    to_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.kubernetes.kinds import ServedKind

__all__ = [
    "Manager",
    "Record",
    "Writer",
    "apply_config",
    "pack_record",
    "replace_object",
    "timestamp",
    "unpack_record",
]


def timestamp() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Manager:
    """Who set fields, and how."""

    name: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and what of the object.

    Attributes:
        manager: The name of the field manager.
        force: Whether fields of other managers are taken over.
        subresource: `status` for a write of the status, else empty.
    """

    manager: str
    force: bool = False
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An object at one version.

    Attributes:
        object: The object, without its managed fields.
        owners: The fields of each manager.
        times: When each manager last wrote.
    """

    object: Mapping[str, Any]
    owners: Mapping[Manager, Paths] = field(default_factory=dict)
    times: Mapping[Manager, str] = field(default_factory=dict)

    def document(self, api_version: str) -> dict[str, Any]:
        """Return the object as a client reads it."""
        found = copy.deepcopy(dict(self.object))
        found["apiVersion"] = api_version
        found["metadata"]["managedFields"] = [
            {
                "manager": manager.name,
                "operation": manager.operation,
                "apiVersion": api_version,
                "time": self.times.get(manager, ""),
                "fieldsType": "FieldsV1",
                "fieldsV1": to_fields(paths),
                **({"subresource": manager.subresource} if manager.subresource else {}),
            }
            for manager, paths in self.owners.items()
            if paths
        ]
        return found


def pack_record(record: Record) -> dict[str, Any]:
    """Return an object with its managers as a JSON document, which `unpack_record` reads."""
    managers = [
        [manager.name, manager.operation, manager.subresource, record.times.get(manager, ""), sorted(paths)]
        for manager, paths in record.owners.items()
    ]
    return {"object": record.object, "managers": managers}


def unpack_record(document: Mapping[str, Any]) -> Record:
    """Return the object that `pack_record` has packed."""
    owners: dict[Manager, Paths] = {}
    times: dict[Manager, str] = {}
    for name, operation, subresource, time, paths in document["managers"]:
        manager = Manager(name, operation, subresource)
        times[manager] = time
        owners[manager] = frozenset(tuple((kind, value) for kind, value in path) for path in paths)
    return Record(object=document["object"], owners=owners, times=times)


def apply_config(live: Record | None, config: Mapping[str, Any], kind: ServedKind, writer: Writer) -> Record:
    """Apply a configuration on the server's side.

    Raises:
        KubeStatusError: Another manager owns a field with another value.
    """
    shape = Shape(kind)
    config = _only(config, kind, writer.subresource)
    wanted = list_paths(config, shape)
    own = Manager(writer.manager, "Apply", writer.subresource)
    before = live or Record(object=_make_new(config, kind))
    owners = dict(before.owners)
    _resolve_conflicts(before, config, wanted, own, (owners, writer, kind))
    merged = merge(before.object, config, shape)
    others = frozenset().union(*(paths for manager, paths in owners.items() if manager != own))
    for path in sorted(owners.get(own, frozenset()) - wanted, key=len, reverse=True):
        if path not in others and not any(path == other[: len(path)] for other in wanted | others):
            remove_at(merged, path)
    owners[own] = wanted
    return _finish(live, merged, owners, own, kind)


def _resolve_conflicts(
    before: Record,
    config: Mapping[str, Any],
    wanted: Paths,
    own: Manager,
    context: tuple[dict[Manager, Paths], Writer, ServedKind],
) -> None:
    """Refuse what others own with another value, or take it from them."""
    owners, writer, kind = context
    rows = []
    for manager, paths in before.owners.items():
        if manager == own:
            continue
        taken = frozenset(
            path
            for path in paths & wanted
            # That an item is there is no value that two could disagree about.
            if path[-1][0] == "f" and get_at(before.object, path) != get_at(config, path)
        )
        rows += [(manager.name, format_path(path)) for path in sorted(taken)]
        owners[manager] = paths - taken
    if rows and not writer.force:
        raise problems.field_conflict(rows, kind.api_version)


def replace_object(live: Record | None, new: Mapping[str, Any], kind: ServedKind, writer: Writer) -> Record:
    """Take an object as a client has written it whole."""
    shape = Shape(kind)
    own = Manager(writer.manager, "Update", writer.subresource)
    if live is None:
        made = merge(_make_new(new, kind), _only(new, kind, ""), shape)
        return _finish(None, made, {own: list_paths(_only(new, kind, ""), shape)}, own, kind)
    kept = dict(live.object)
    if writer.subresource:
        merged = {**kept, "status": copy.deepcopy(new.get("status") or {})}
    else:
        merged = copy.deepcopy(dict(new))
        merged["metadata"] = {**(new.get("metadata") or {}), **_servers_metadata(kept)}
        if kind.has_status:
            merged["status"] = kept.get("status")
        merged = {key: value for key, value in merged.items() if value is not None}
    before, after = list_paths(live.object, shape), list_paths(merged, shape)
    changed = frozenset(path for path in after if get_at(live.object, path) != get_at(merged, path))
    gone = before - after
    owners = {
        manager: paths - gone if manager == own else paths - gone - changed
        for manager, paths in live.owners.items()
    }
    owners[own] = owners.get(own, frozenset()) | changed
    return _finish(live, merged, owners, own, kind)


def _only(obj: Mapping[str, Any], kind: ServedKind, subresource: str) -> dict[str, Any]:
    """Return the part of an object that a request may write."""
    if subresource:
        return {
            key: value for key, value in obj.items() if key in ("apiVersion", "kind", "metadata", "status")
        }
    return {key: value for key, value in obj.items() if key != "status" or not kind.has_status}


def _make_new(obj: Mapping[str, Any], kind: ServedKind) -> dict[str, Any]:
    metadata = {
        "name": obj["metadata"]["name"],
        "uid": str(uuid.uuid4()),
        "creationTimestamp": timestamp(),
        "generation": 1,
    }
    if kind.is_namespaced:
        metadata["namespace"] = obj["metadata"]["namespace"]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


_OF_THE_SERVER = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion")


def _servers_metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {key: obj["metadata"][key] for key in _OF_THE_SERVER if key in obj["metadata"]}


def _finish(
    live: Record | None, merged: dict[str, Any], owners: dict[Manager, Paths], own: Manager, kind: ServedKind
) -> Record:
    """Return the new version; the same one where nothing has changed."""
    metadata = merged["metadata"] = dict(merged["metadata"])
    metadata.pop("managedFields", None)
    if live is not None:
        metadata |= _servers_metadata(live.object)
        kept = {manager: paths for manager, paths in owners.items() if paths}
        if merged == live.object and kept == {row: paths for row, paths in live.owners.items() if paths}:
            return live
        if _spec(merged, kind) != _spec(live.object, kind):
            metadata["generation"] = int(metadata.get("generation", 1)) + 1
    times = {**(live.times if live else {}), own: timestamp()}
    return replace(live or Record(object={}), object=merged, owners=owners, times=times)


def _spec(obj: Mapping[str, Any], kind: ServedKind) -> dict[str, Any]:
    left_out = ("metadata", "status") if kind.has_status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in left_out}
