"""Changing the object without an editor: `--set path=value`, `--unset path`, and patches."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json_pairs
from stackyard.base.errors import InvalidInputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PatchError", "apply_patch", "format_object", "parse_path", "set_values"]


class PatchError(InvalidInputError):
    """A change cannot be made: it names something that is not there, or that is no place for it."""

    code = "E-DEPLOYMENT-PATCH"
    summary = "The change does not fit the object"
    default_remedy = "Look at the object with `stackyard deployment get`; nothing was written."


def format_object(data: dict[str, Any]) -> bytes:
    """Return an object as it is stored: readable, in the order that it has."""
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def parse_path(text: str) -> tuple[str, ...]:
    r"""Read a path as `containers.web.cpu_cores`; a dot inside a key is written `\.`.

    Raises:
        UsageError: There is nothing in it.
    """
    parts = [""]
    characters = iter(text)
    for character in characters:
        if character == "\\":
            parts[-1] += next(characters, "")
        elif character == ".":
            parts.append("")
        else:
            parts[-1] += character
    if not all(parts):
        raise UsageError(f"`{text}` is no path: write it as containers.web.cpu_cores.")
    return tuple(parts)


def set_values(data: dict[str, Any], assigned: Sequence[str], removed: Sequence[str] = ()) -> dict[str, Any]:
    """Return an object with values set (`path=value`, JSON or plain text) and removed.

    Raises:
        UsageError: One of them is not written so.
        PatchError: It does not fit the object.
    """
    changed = copy.deepcopy(data)
    for text in assigned:
        said, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"`{text}` assigns nothing: write it as path=value.")
        *above, last = parse_path(said)
        parent = _within(changed, above, said, makes=True)
        _put(parent, last, _value(value), said)
    for said in removed:
        *above, last = parse_path(said)
        parent = _within(changed, above, said, makes=False)
        _take(parent, last, said)
    return changed


def _value(text: str) -> Any:
    """Return a value: JSON where it is such, otherwise the text itself."""
    try:
        return parse_json_pairs(text, parse_constant=str)
    except ValueError:
        # Also a number that is too long for one.
        return text


def _within(data: Any, path: Sequence[str], said: str, *, makes: bool) -> Any:
    """Return what a path leads to; on the way, objects that are not there yet are created."""
    current = data
    for key in path:
        if isinstance(current, list):
            current = current[_index(current, key, said)]
            continue
        if not isinstance(current, dict):
            raise PatchError(f"`{said}` leads through {key!r} of something that is neither object nor list.")
        if current.get(key) is None:
            if not makes:
                raise PatchError(f"`{said}` is not there: there is no {key!r}.")
            current[key] = {}
        current = current[key]
    return current


def _index(items: list[Any], key: str, said: str, *, end: int = 0) -> int:
    if not key.isdigit() or int(key) >= len(items) + end:
        raise PatchError(f"`{said}`: {key!r} is no place in a list of {len(items)}.")
    return int(key)


def _put(parent: Any, key: str, value: Any, said: str) -> None:
    if isinstance(parent, list):
        index = _index(parent, key, said, end=1)
        parent[index : index + 1] = [value]
    elif isinstance(parent, dict):
        parent[key] = value
    else:
        raise PatchError(f"`{said}` has no place: what is above it is neither object nor list.")


def _take(parent: Any, key: str, said: str) -> Any:
    if isinstance(parent, list):
        return parent.pop(_index(parent, key, said))
    if not isinstance(parent, dict) or key not in parent:
        raise PatchError(f"`{said}` is not there.")
    return parent.pop(key)


def apply_patch(data: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Return an object with a patch applied: an object is a merge patch, a list a JSON Patch.

    Raises:
        PatchError: It is neither, or does not fit the object.
    """
    if isinstance(patch, dict):
        merged: dict[str, Any] = _merge_patched(data, patch)
        return merged
    if not isinstance(patch, list):
        raise PatchError("A patch is an object (RFC 7396) or a list of operations (RFC 6902).")
    changed = copy.deepcopy(data)
    for operation in patch:
        _operate(changed, operation)
    return changed


def _merge_patched(data: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    changed = dict(data) if isinstance(data, dict) else {}
    for key, value in patch.items():
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = _merge_patched(changed.get(key), value)
    return changed


def _operate(data: dict[str, Any], operation: Any) -> None:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise PatchError("An operation of a JSON Patch is an object with `op` and `path`.")
    verb, pointer = operation.get("op"), operation["path"]
    if not pointer.startswith("/"):
        raise PatchError(f"`{pointer}` is no JSON pointer below the top of the object.")
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    parent = _within(data, above, pointer, makes=False)
    if verb in ("add", "replace") and "value" not in operation:
        raise PatchError(f"`{verb}` of `{pointer}` has no `value`.")
    match verb:
        case "add" if isinstance(parent, list):
            at = len(parent) if last == "-" else _index(parent, last, pointer, end=1)
            parent.insert(at, operation["value"])
        case "add":
            _put(parent, last, operation["value"], pointer)
        case "replace":
            _take(parent, last, pointer) if isinstance(parent, dict) else None
            _put(parent, last, operation["value"], pointer)
        case "remove":
            _take(parent, last, pointer)
        case "test":
            found = parent.get(last) if isinstance(parent, dict) else parent[_index(parent, last, pointer)]
            if found != operation.get("value"):
                raise PatchError(
                    f"`{pointer}` is {found!r}, and the patch expects {operation.get('value')!r}."
                )
        case _:
            raise PatchError(f"`{verb}` is no operation here: there is add, remove, replace and test.")
