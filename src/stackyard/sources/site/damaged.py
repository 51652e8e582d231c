"""What is left of a file with mistakes: enough to check what the rest of it says of other files.

A file that is not valid is never used. It is still checked, so that anyone who corrects it sees everything at
once: parts that do not fit are left out, and it is noted which, because what they say is not known.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError, create_model

from stackyard.sources.site.entities.values import Entity
from stackyard.sources.site.unions import real_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["LostPaths", "ValidValues", "is_lost", "keep_valid"]

_Path = tuple["Key", ...]
# Lists of guests: each stays in its place, whatever is wrong with it, with what every other rule asks for.
_GUESTS: dict[str, dict[str, str]] = {"vms": {}, "nodes": {"type": "vm"}, "levels": {}}
# What shows only once other mistakes are gone shows in the next round; more than these are not to be had.
_ROUNDS = 4


class LostPaths:
    """The places of what was left out of a file.

    Args:
        paths: The places.
    """

    __slots__ = ("_above", "paths")

    def __init__(self, paths: Iterable[_Path] = ()) -> None:
        self.paths = frozenset(paths)
        self._above = frozenset(path[:length] for path in self.paths for length in range(len(path)))

    def touch(self, path: _Path) -> bool:
        """Return whether something at a place, above it or inside of it was left out."""
        return path in self._above or any(path[:length] in self.paths for length in range(len(path) + 1))


class ValidValues:
    """The values of a file without those that do not fit, each in its place of the file.

    Args:
        places: The file.
        data: What is left of its values.
        lost: The places of what was left out.
    """

    def __init__(self, places: LocatedValues, data: dict[str, Any], lost: LostPaths) -> None:
        self._places = places
        self.data = data
        self.lost = lost

    @property
    def path(self) -> str:
        """The file, as it is shown to the user."""
        return self._places.path

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""
        return self._places.place(keys)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""
        return self._places.key_place(keys)


def is_lost(places: LocatedValues, *path: Key) -> bool:
    """Return whether something at a place, above it or inside of it was left out of a file."""
    lost: LostPaths | None = getattr(places, "lost", None)
    return lost is not None and lost.touch(path)


def keep_valid(model: type[BaseModel], places: LocatedValues) -> tuple[ValidValues, Any]:
    """Return what is left of a file that is not valid, and a model of it: None where nothing is left."""
    pruning = _Pruning(data=copy.deepcopy(places.data), lost=set())
    for _ in range(_ROUNDS):
        errors = _errors(model, pruning.data)
        if not any([pruning.prune(path) for path in errors]):
            break
    pruning.fill_guests()
    fields = _valid_fields(model, pruning)
    left = ValidValues(places, pruning.data, LostPaths(pruning.lost))
    unknown = {
        name: None
        for name, info in model.model_fields.items()
        if info.is_required() or (isinstance(info.default, str) and (name,) in pruning.lost)
    }
    return left, model.model_construct(**{**unknown, **fields})


def _errors(model: type[BaseModel], data: dict[str, Any]) -> list[_Path]:
    """Return the places of what does not fit; of a key that is missing, the mapping that lacks it."""
    try:
        model.model_validate(data)
    except ValidationError as err:
        return [tuple(real_path(data, each["loc"])) for each in err.errors(include_url=False)]
    return []


def _valid_fields(model: type[BaseModel], pruning: _Pruning) -> dict[str, Any]:
    """Return the fields of a model that what is left has values for; the guests stay plain values."""
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name in _GUESTS or name not in pruning.data:
            continue
        kind: Any = info.annotation
        alone = create_model("Field", __base__=Entity, **{name: (kind, info)})  # type: ignore[call-overload]
        try:
            fields[name] = getattr(alone.model_validate({name: pruning.data[name]}), name)
        except ValidationError:
            pruning.lost.add((name,))
    return fields


@dataclass(slots=True, kw_only=True)
class _Pruning:
    """Values on their way to those that fit."""

    data: dict[str, Any]
    lost: set[_Path]

    def prune(self, path: _Path) -> bool:
        """Leave out what does not fit; return whether there was anything to leave out."""
        if not path:
            return False
        if len(path) == 2 and path[0] in _GUESTS:
            guests = self.data.get(str(path[0]))
            is_other = isinstance(guests, list) and not isinstance(guests[int(path[1])], dict)
            if isinstance(guests, list) and is_other:
                guests[int(path[1])] = {}
                self.lost.add(path)
            return is_other
        # An item of a list cannot go alone: those after it would be in another place.
        while isinstance(path[-1], int):
            path = path[:-1]
        above = self._find_parent(path)
        if above is None or path[-1] not in above:
            return False
        del above[path[-1]]
        self.lost.add(path)
        return True

    def _find_parent(self, path: _Path) -> dict[str, Any] | None:
        current: Any = self.data
        for key in path[:-1]:
            try:
                current = current[key]
            except (KeyError, IndexError, TypeError):
                return None
        return current if isinstance(current, dict) else None

    def fill_guests(self) -> None:
        """Give each guest what every guest has: a name, and a type where it needs one."""
        for key, defaults in _GUESTS.items():
            if not isinstance(self.data.get(key), list):
                self.data[key] = []
            for index, entry in enumerate(self.data[key]):
                for name, value in {"name": f"{key}[{index}]", **defaults}.items():
                    if entry.setdefault(name, value) is value:
                        self.lost.add((key, index, name))
