"""`$patch: delete` of strategic merge patches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DIRECTIVE", "Delete", "DeleteError", "apply_delete", "split_deletes"]

DIRECTIVE = "$patch"
_DELETE = "delete"


class DeleteError(ValueError):
    """What should be deleted cannot be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Something to remove.

    Attributes:
        path: The keys to it; none for the whole document. For an item of a list, the keys to the list.
        selector: The key and value of the item of a list; None for a key.
        place: The keys and indexes in the patch.
    """

    path: tuple[str, ...]
    selector: tuple[str, Any] | None = None
    place: tuple[str | int, ...] = ()


def split_deletes(data: Mapping[str, Any]) -> tuple[list[Delete], dict[str, Any] | None]:
    """Return what a patch removes, and what is left of the patch: None if it only removes."""
    found: list[Delete] = []
    rest = _walk(data, (), (), found)
    if found and isinstance(rest, dict) and set(rest) <= {"apiVersion", "kind", "name", "version"}:
        rest = None
    return found, rest


def is_delete(value: Any) -> bool:
    """Tell whether a value of a patch says that it is to be removed."""
    return isinstance(value, Mapping) and value.get(DIRECTIVE) == _DELETE


def _walk(value: Any, path: tuple[str, ...], place: tuple[str | int, ...], found: list[Delete]) -> Any:
    """Return a value without what is to be removed; None if nothing is left of it."""
    if is_delete(value):
        found.append(Delete(path=path, place=place))
        return None
    if isinstance(value, Mapping):
        kept = {
            key: rest
            for key, one in value.items()
            if (rest := _walk(one, (*path, str(key)), (*place, key), found)) is not None or one is None
        }
        return kept if kept or not value else None
    if isinstance(value, list):
        return _walk_list(value, path, place, found)
    return value


def _walk_list(
    items: list[Any], path: tuple[str, ...], place: tuple[str | int, ...], found: list[Delete]
) -> list[Any] | None:
    kept = []
    for index, item in enumerate(items):
        if not is_delete(item):
            kept.append(item)
            continue
        selector = next(((key, value) for key, value in item.items() if key != DIRECTIVE), None)
        found.append(Delete(path=path, selector=selector or ("", None), place=(*place, index)))
    return kept if kept or not items else None


def apply_delete(document: dict[str, Any], delete: Delete) -> None:
    """Remove something from a document; a last key that is not set is as good as removed.

    Raises:
        DeleteError: The way to it is not there, or no item of a list fits.
    """
    *parents, last = delete.path
    around: Any = document
    for key in parents:
        around = around.get(key) if isinstance(around, dict) else None
        if around is None:
            raise DeleteError(f"`{key}` is not there")
    if not isinstance(around, dict):
        raise DeleteError("a key inside an item of a list cannot be deleted")
    if delete.selector is None:
        around.pop(last, None)
        return
    key, value = delete.selector
    items: Any = around.get(last)
    fitting = [
        at
        for at, item in enumerate(items if isinstance(items, list) else [])
        if isinstance(item, dict) and str(item.get(key)) == str(value)
    ]
    if not fitting:
        raise DeleteError(f"no item has `{key}: {value}`" if key else "the item to delete is not named")
    del items[fitting[0]]
