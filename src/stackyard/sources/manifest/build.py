"""From the model of a file to nodes that fit together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from stackyard.base.dag import CycleError
from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.manifest.model import Manifest, Node, NodeType, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import LocatedValues
    from stackyard.sources.site.entities.manifests import ManifestV2

__all__ = ["build", "build_flat"]

NAME_TWICE = Kind(
    code="E-MANIFEST-NAME-TWICE",
    summary="Two nodes have the same name",
    remedy="Give one of them another name.",
)
NO_SUCH_NODE = Kind(
    code="E-MANIFEST-REFERENCE",
    summary="A node names another that is not there",
    remedy="Correct the name, or add the node.",
)
NOT_A_HOST = Kind(
    code="E-MANIFEST-PARENT",
    summary="A node is inside of one that cannot hold it",
    remedy="Only a node of `type: pve` holds others.",
)
NOT_BESIDE = Kind(
    code="E-MANIFEST-DEPENDS-ON",
    summary="A node depends on one that is not beside it",
    remedy="Let it depend on nodes with the same parent and host; it waits for its parent anyway.",
)
CIRCLE = Kind(
    code="E-MANIFEST-CYCLE",
    summary="Nodes wait for each other",
    remedy="Remove one of the `parent` or `depends_on` that make the circle.",
)
COPIES = Kind(
    code="E-MANIFEST-COUNT",
    summary="A node cannot be there several times",
    remedy="Write the copies as nodes of their own.",
)
HOST_INSIDE = Kind(
    code="E-MANIFEST-HOST",
    summary="A node names a host and a parent",
    remedy="A node inside of another runs where that one is: remove `host`.",
)
# What says how nodes lie, and nothing of the guest.
_NOT_OF_GUESTS = frozenset(("name", "type", "parent", "host", "depends_on", "count", "execution"))
_ONCE_ONLY = ("ip", "mac", "nics")


def build(model: ManifestV2, places: LocatedValues, found: Diagnostics) -> Manifest | None:
    """Return the manifest; nothing, and findings, where its nodes do not fit together."""
    before = len(found.errors)
    entries: list[dict[str, Any]] = places.data["nodes"]
    _check_names(entries, places, found)
    _check_references(entries, places, found)
    _check_copies(entries, places, found)
    if len(found.errors) > before:
        return None
    manifest = Manifest(
        name=model.name,
        description=model.description,
        posture=model.posture,
        default_mode=model.execution.default_mode,
        settings=model.settings,
        nodes=tuple(_nodes(entries, model.execution.default_mode)),
        places=places,
    )
    try:
        _ = manifest.graph
    except CycleError as err:
        first = manifest.by_name[str(err.cycle[0])]
        ring = " -> ".join(map(str, err.cycle))
        found.add(CIRCLE, f"These wait for each other: {ring}.", places.place(("nodes", first.index)))
        return None
    return manifest


def build_flat(model: ManifestV2, places: LocatedValues) -> Manifest:
    """Return the nodes side by side, for a manifest whose nodes do not fit together: each can be checked."""
    apart = ("parent", "depends_on", "count")
    entries = [
        {
            **{key: value for key, value in entry.items() if key not in apart},
            "name": f"{entry['name']}-{index}",
        }
        for index, entry in enumerate(places.data["nodes"])
    ]
    mode = model.execution.default_mode
    return Manifest(
        name=str(model.name),
        # One that is not right is reported as it is.
        posture=model.posture or "dev",
        default_mode=mode,
        settings=model.settings,
        nodes=tuple(_nodes(entries, mode)),
        places=places,
    )


def _check_names(entries: list[dict[str, Any]], places: LocatedValues, found: Diagnostics) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        for name in _copies(entry):
            if name in seen:
                found.add(NAME_TWICE, f"'{name}' is there twice.", places.place(("nodes", index, "name")))
            seen.add(name)


def _check_references(entries: list[dict[str, Any]], places: LocatedValues, found: Diagnostics) -> None:
    by_name = {entry["name"]: entry for entry in entries}
    for index, entry in enumerate(entries):
        parent = entry.get("parent")
        if parent is not None:
            where = places.place(("nodes", index, "parent"))
            if parent not in by_name:
                found.add(NO_SUCH_NODE, f"There is no node '{parent}'.{did_you_mean(parent, by_name)}", where)
            elif by_name[parent]["type"] != NodeType.PVE:
                kind = by_name[parent]["type"]
                found.add(NOT_A_HOST, f"'{parent}', in which '{entry['name']}' is, is a {kind}.", where)
            if entry.get("host") is not None:
                detail = f"'{entry['name']}' is inside of '{parent}', and names the host '{entry['host']}'."
                found.add(HOST_INSIDE, detail, places.place(("nodes", index, "host")))
        for number, needed in enumerate(entry.get("depends_on") or ()):
            where = places.place(("nodes", index, "depends_on", number))
            if needed not in by_name:
                found.add(NO_SUCH_NODE, f"There is no node '{needed}'.{did_you_mean(needed, by_name)}", where)
            elif _scope(by_name[needed]) != _scope(entry):
                detail = f"'{needed}', on which '{entry['name']}' depends, is not beside it."
                found.add(NOT_BESIDE, detail, where)


def _check_copies(entries: list[dict[str, Any]], places: LocatedValues, found: Diagnostics) -> None:
    parents = Counter(entry.get("parent") for entry in entries)
    for index, entry in enumerate(entries):
        if entry.get("count") is None:
            continue
        where = places.place(("nodes", index, "count"))
        if parents[entry["name"]]:
            detail = f"'{entry['name']}' is there {entry['count']} times, and nodes are inside of it."
            found.add(COPIES, detail, where)
        once = [key for key in _ONCE_ONLY if _is_of_one(entry.get(key))]
        if once and entry["count"] > 1:
            keys = ", ".join(f"`{key}`" for key in once)
            found.add(COPIES, f"All copies of '{entry['name']}' would have the same {keys}.", where)


def _is_of_one(value: Any) -> bool:
    return value is not None and value != "dhcp"


def _copies(entry: dict[str, Any]) -> list[str]:
    count = entry.get("count")
    name: str = entry["name"]
    return [name] if count is None else [f"{name}-{number}" for number in range(1, count + 1)]


def _scope(entry: dict[str, Any]) -> Scope:
    parent = entry.get("parent")
    return Scope(parent=parent, host=None if parent else entry.get("host"))


def _nodes(entries: list[dict[str, Any]], default_mode: Any) -> Iterator[Node]:
    copies = {entry["name"]: _copies(entry) for entry in entries}
    for index, entry in enumerate(entries):
        plain = {key: value for key, value in entry.items() if key not in _NOT_OF_GUESTS}
        first_id = plain.pop("vm_id", None) or plain.get("vmid")
        for number, name in enumerate(copies[entry["name"]]):
            own = plain if first_id is None else {**plain, "vmid": first_id + number}
            yield Node(
                name=name,
                type=NodeType(entry["type"]),
                entry=own,
                index=index,
                mode=(entry.get("execution") or {}).get("mode") or default_mode,
                scope=_scope(entry),
                depends_on=tuple(copy for needed in entry.get("depends_on") or () for copy in copies[needed]),
            )
