"""The fields of an object as sets of paths: who set which, and how two versions are merged.

A path is a tuple of steps: `("f", name)` is a field of a mapping, `("k", keys)` the item of a list that is
known by these keys, and `("v", value)` an item of a set. Lists that have neither are one value as a whole.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pvelab.kubernetes.kinds import ServedKind

__all__ = ["Path", "Paths", "Shape", "format_path", "get_at", "list_paths", "merge", "remove_at", "to_fields"]

Path = tuple[tuple[str, str], ...]
Paths = frozenset[Path]

_SET = ("",)
# The lists of built-in kinds whose items are known by keys, by the name of their field.
_BUILT_IN_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "secrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
_PORT_KEYS = {"containers": ("containerPort", "protocol"), "spec": ("port", "protocol")}
_DEFAULTS = {"protocol": "TCP"}
# These name the object and belong to no manager.
_UNOWNED = frozenset({(("f", "apiVersion"),), (("f", "kind"),)})
_METADATA_OF_THE_SERVER = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
    )
)


class Shape:
    """Knows which lists of a kind are merged item by item.

    Args:
        kind: The kind.
    """

    def __init__(self, kind: ServedKind) -> None:
        self._kind = kind

    def keys(self, path: Path) -> tuple[str, ...]:
        """Return the keys by which the items of a list are known; `("",)` for a set, empty for a whole."""
        names = [step[1] for step in path if step[0] == "f"]
        if names[:1] == ["metadata"]:
            return {"ownerReferences": ("uid",), "finalizers": _SET}.get(names[-1], ())
        if self._kind.is_custom:
            return self._custom_keys(path)
        if names[-1] == "ports":
            return _PORT_KEYS.get(names[-2], ())
        return _BUILT_IN_KEYS.get(names[-1], ())

    def _custom_keys(self, path: Path) -> tuple[str, ...]:
        schema: Mapping[str, Any] = self._kind.schema
        for kind, name in path:
            if kind == "f":
                found = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
                schema = found if isinstance(found, Mapping) else {}
            else:
                schema = schema.get("items") or {}
        if schema.get("x-kubernetes-list-type") == "map":
            return tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return _SET if schema.get("x-kubernetes-list-type") == "set" else ()


def list_paths(obj: Mapping[str, Any], shape: Shape) -> Paths:
    """Return the fields that an object sets."""
    return frozenset(path for path in _walk(obj, (), shape) if path not in _UNOWNED and not _is_servers(path))


def _is_servers(path: Path) -> bool:
    return len(path) > 1 and path[0][1] == "metadata" and path[1][1] in _METADATA_OF_THE_SERVER


def _walk(value: Any, path: Path, shape: Shape) -> Iterator[Path]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _walk(inner, (*path, ("f", str(name))), shape)
    elif isinstance(value, list) and value and (keys := shape.keys(path)):
        for item in value:
            step = _step_of(item, keys)
            yield (*path, step)
            if step[0] == "k":
                yield from _walk(item, (*path, step), shape)
    elif path:
        yield path


def _step_of(item: Any, keys: tuple[str, ...]) -> tuple[str, str]:
    if keys == _SET or not isinstance(item, Mapping):
        return "v", orjson.dumps(item).decode()
    found = {key: item.get(key, _DEFAULTS.get(key)) for key in keys}
    known = {key: value for key, value in found.items() if value is not None}
    return "k", orjson.dumps(known, option=orjson.OPT_SORT_KEYS).decode()


_ABSENT = object()


def get_at(obj: Any, path: Path) -> Any:
    """Return the value of a field; a value that equals no other where there is none."""
    for kind, name in path:
        if kind == "f":
            obj = obj.get(name, _ABSENT) if isinstance(obj, Mapping) else _ABSENT
        elif isinstance(obj, list):
            obj = next((item for item in obj if _is_item(item, kind, name)), _ABSENT)
        else:
            return _ABSENT
    return obj


def _is_item(item: Any, kind: str, name: str) -> bool:
    wanted = parse_json(name)
    if kind == "v" or not isinstance(item, Mapping):
        return bool(item == wanted)
    return all(item.get(key, _DEFAULTS.get(key)) == value for key, value in wanted.items())


def remove_at(obj: Any, path: Path) -> None:
    """Remove a field, and what is empty because of it."""
    *parents, (kind, name) = path
    holder = get_at(obj, tuple(parents))
    if isinstance(holder, dict) and kind == "f":
        holder.pop(name, None)
    elif isinstance(holder, list):
        holder[:] = [item for item in holder if not _is_item(item, kind, name)]
    if parents and holder in ({}, []):
        remove_at(obj, tuple(parents))


def merge(live: Any, config: Any, shape: Shape, path: Path = ()) -> Any:
    """Return a value with everything set that a configuration sets."""
    if isinstance(live, Mapping) and isinstance(config, Mapping):
        merged = {key: copy.deepcopy(value) for key, value in live.items()}
        for key, value in config.items():
            merged[key] = merge(merged.get(key), value, shape, (*path, ("f", str(key))))
        return merged
    if isinstance(live, list) and isinstance(config, list) and (keys := shape.keys(path)):
        return _merge_items(live, config, keys, (shape, path))
    return copy.deepcopy(config)


def _merge_items(
    live: list[Any], config: list[Any], keys: tuple[str, ...], at: tuple[Shape, Path]
) -> list[Any]:
    shape, path = at
    merged = list(live)
    for item in config:
        step = _step_of(item, keys)
        place = next((number for number, old in enumerate(merged) if _is_item(old, *step)), None)
        if place is None:
            merged.append(copy.deepcopy(item))
        else:
            merged[place] = merge(merged[place], item, shape, (*path, step))
    return merged


def format_path(path: Path) -> str:
    """Return a path as Kubernetes writes it in a conflict: `.spec.containers[name="web"].image`."""
    text = ""
    for kind, name in path:
        if kind == "f":
            text += f".{name}"
        elif kind == "v":
            text += f"[={name}]"
        else:
            keys = ",".join(
                f"{key}={orjson.dumps(value).decode()}" for key, value in parse_json(name).items()
            )
            text += f"[{keys}]"
    return text


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """Return paths as `fieldsV1` has them."""
    found: dict[str, Any] = {}
    for path in sorted(paths):
        place = found
        for kind, name in path:
            place = place.setdefault(f"{kind}:{name}", {})
        if path[-1][0] == "k":
            place["."] = {}
    return found
