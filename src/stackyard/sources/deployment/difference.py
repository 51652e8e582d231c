"""What differs between two objects: by guest and field, not by line."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.deployment.generators import generate
from stackyard.sources.deployment.scope import Scope
from stackyard.sources.deployment.text import same, strip_comments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["GUARDED", "ChangeKind", "FieldChange", "ObjectChange", "ObjectDifference", "compare"]

# Maps from which nothing disappears unless it is named.
GUARDED = ("containers", "vms", "nodes", "pools", "node_storage", "network_cidrs", "node_services")
_GENERATED = "generated"


class ChangeKind(enum.StrEnum):
    """What happened to an entry."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One value that differs; None where there was or is none."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """One entry that differs.

    Attributes:
        section: The map that it is in; empty for a value at the top of the object.
        key: Its key.
        kind: What happened to it.
        fields: What differs in it.
        new_key: The key that a renamed guest has now.
    """

    section: str
    key: str
    kind: ChangeKind
    fields: tuple[FieldChange, ...] = ()
    new_key: str | None = None

    def __str__(self) -> str:
        name = f"{self.section}.{self.key}" if self.section else self.key
        return f"{name} -> {self.new_key}" if self.new_key else name


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDifference:
    """What differs between two objects.

    Attributes:
        changes: Entry by entry.
        has_other_comments: Whether comments or the layout differ.
    """

    changes: tuple[ObjectChange, ...]
    has_other_comments: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs that means anything."""
        return not self.changes

    @property
    def lost(self) -> tuple[ObjectChange, ...]:
        """The entries that disappear from a guarded map."""
        guarded = (*GUARDED, _GENERATED)
        return tuple(c for c in self.changes if c.kind is ChangeKind.REMOVED and c.section in guarded)

    @property
    def renamed(self) -> tuple[ObjectChange, ...]:
        """The guests that have another key."""
        return tuple(c for c in self.changes if c.kind is ChangeKind.RENAMED)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> ObjectDifference:
    """Return what differs between two objects, comments left out."""
    old, new = _drop_comments(before), _drop_comments(after)
    changes = [change for section in _sections(old, new) for change in _entries(section, old, new)]
    changes += _top(old, new)
    changes += _compare_generated(old, new)
    return ObjectDifference(
        changes=tuple(_with_renames(changes, old, new)),
        has_other_comments=not same(dict(before), dict(after)),
    )


def _drop_comments(value: Any) -> Any:
    """Return an object without comments, and entries without what is null, which counts as not written."""
    return {
        section: {key: _drop_null(entry) for key, entry in entries.items()}
        if section in GUARDED and isinstance(entries, dict)
        else _drop_null(entries)
        for section, entries in strip_comments(value).items()
        if entries is not None
    }


def _drop_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_null(part) for key, part in value.items() if part is not None}
    return value


def _sections(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the maps of entries: the guarded ones, as far as they are maps on both sides."""
    return [name for name in GUARDED if _is_map(old.get(name)) and _is_map(new.get(name))]


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _entries(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ObjectChange]:
    ours, theirs = old.get(section) or {}, new.get(section) or {}
    for key in dict.fromkeys([*ours, *theirs]):
        if key not in theirs:
            yield ObjectChange(section=section, key=key, kind=ChangeKind.REMOVED)
        elif key not in ours:
            fields = tuple(_fields(None, theirs[key]))
            yield ObjectChange(section=section, key=key, kind=ChangeKind.ADDED, fields=fields)
        elif not same(ours[key], theirs[key]):
            fields = tuple(_fields(ours[key], theirs[key]))
            yield ObjectChange(section=section, key=key, kind=ChangeKind.CHANGED, fields=fields)


def _top(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ObjectChange]:
    handled = set(_sections(old, new))
    for key in dict.fromkeys([*old, *new]):
        if key in handled or same(old.get(key), new.get(key)):
            continue
        kind = (
            ChangeKind.REMOVED
            if key not in new
            else ChangeKind.ADDED
            if key not in old
            else ChangeKind.CHANGED
        )
        fields = tuple(_fields(old.get(key), new.get(key)))
        yield ObjectChange(section="", key=key, kind=kind, fields=fields)


def _compare_generated(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ObjectChange]:
    """Return the generated guests that disappear, whichever word of the generator made them go."""
    for key in sorted(
        _list_generated_keys(old) - _list_generated_keys(new) - set(new.get("containers") or {})
    ):
        yield ObjectChange(section=_GENERATED, key=key, kind=ChangeKind.REMOVED)


def _list_generated_keys(data: Mapping[str, Any]) -> set[str]:
    try:
        return {made.key for made in generate(Scope(data))}
    except (KeyError, TypeError, AttributeError, ValueError):
        # Of an object that is not valid, nothing is generated; anyone who checks it says why.
        return set()


def _fields(before: Any, after: Any, name: str = "") -> Iterator[FieldChange]:
    if same(before, after):
        return
    if isinstance(before, dict | None) and isinstance(after, dict):
        ours = before or {}
        for key in dict.fromkeys([*ours, *after]):
            yield from _fields(ours.get(key), after.get(key), f"{name}.{key}" if name else key)
        return
    yield FieldChange(field=name, before=before, after=after)


def _with_renames(
    changes: list[ObjectChange], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[ObjectChange]:
    """Return the changes with a guest that went and one that came with the same vm_id as one rename."""
    came = {
        (change.section, (new.get(change.section) or {})[change.key].get("vm_id")): change
        for change in changes
        if change.kind is ChangeKind.ADDED and change.section in ("containers", "vms")
        if isinstance((new.get(change.section) or {})[change.key], dict)
    }
    paired: set[int] = set()
    renames: dict[int, ObjectChange] = {}
    for change in changes:
        entry = (old.get(change.section) or {}).get(change.key) if change.section else None
        if change.kind is not ChangeKind.REMOVED or not isinstance(entry, dict):
            continue
        other = came.get((change.section, entry.get("vm_id")))
        if other is not None and entry.get("vm_id") is not None:
            paired.add(id(other))
            fields = tuple(_fields(entry, new[change.section][other.key]))
            renames[id(change)] = ObjectChange(
                section=change.section,
                key=change.key,
                kind=ChangeKind.RENAMED,
                fields=fields,
                new_key=other.key,
            )
    for change in changes:
        if id(change) in renames:
            yield renames[id(change)]
        elif id(change) not in paired:
            yield change
