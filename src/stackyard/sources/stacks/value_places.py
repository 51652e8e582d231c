"""Where a value is in a variables file, at any depth; the file is read again for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.documents.lines import LineIndex
from stackyard.base.errors import Location
from stackyard.sources.deployment.text import ObjectText, parse_any
from stackyard.sources.stacks.tfvars import index_places

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ValuePlaces"]


class ValuePlaces:
    """Finds values in a variables file that was read without a mistake.

    Args:
        data: The file.
        path: Its name, which tells its form.
    """

    def __init__(self, data: bytes, path: str) -> None:
        text = data.decode()
        self._path = path
        self._json = ObjectText(text, path, parse_any(text, path)) if path.endswith(".json") else None
        self._lines = LineIndex(text)
        self._values, self._collections = ({}, {}) if self._json else index_places(text)

    def find(self, keys: Sequence[str | int]) -> Location:
        """Return where a value is; the place of what is around it, if there is no such value.

        Args:
            keys: The name of the variable, then keys of objects and numbers of items.
        """
        if self._json is not None:
            return self._json.place(tuple(keys))
        name, *rest = keys
        if str(name) not in self._values:
            return Location(self._path)
        start, value = self._values[str(name)]
        for key in rest:
            start, value = self._step(start, value, key)
        return Location(self._path, *self._lines.find(start))

    def _step(self, start: int, value: Any, key: str | int) -> tuple[int, Any]:
        """Return the place and value of one part; what is missing has the place of what it is missing in."""
        if isinstance(value, dict) and key in value:
            _, keys = self._collections[id(value)]
            return keys[str(key)], value[key]
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            item = value[key]
            # Where a plain item of a list is was not kept: it is in the line of the list or near it.
            return self._collections.get(id(item), (start, {}))[0], item
        return start, None
