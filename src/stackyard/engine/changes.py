"""A saved plan as values: what happens to each resource and which attributes change, secrets masked.

The engine's JSON of a plan holds every secret in clear; what is read here holds none. What is compared is
compared before it is masked, so a change of a secret is still a change.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.engine.version import EngineBrokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["SENSITIVE", "UNKNOWN", "Action", "Change", "Changes", "Difference", "Path", "read_changes"]

# The engine's word for something whose making failed.
_TAINTED = "replace_because_tainted"

Path = tuple[str | int, ...]


class _Mark(enum.Enum):
    """A value that cannot be shown."""

    SENSITIVE = "(sensitive)"
    UNKNOWN = "(known after apply)"

    def __str__(self) -> str:
        return self.value


SENSITIVE = _Mark.SENSITIVE
UNKNOWN = _Mark.UNKNOWN


class Action(enum.StrEnum):
    """What a plan does with a resource."""

    NOTHING = "no-op"
    READ = "read"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    FORGET = "forget"


_ACTIONS = {
    ("no-op",): Action.NOTHING,
    ("read",): Action.READ,
    ("create",): Action.CREATE,
    ("update",): Action.UPDATE,
    ("delete",): Action.DELETE,
    ("delete", "create"): Action.REPLACE,
    ("create", "delete"): Action.REPLACE,
    ("forget",): Action.FORGET,
    ("create", "forget"): Action.REPLACE,
    ("forget", "create"): Action.REPLACE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One attribute that changes."""

    path: Path
    before: Any
    after: Any
    forces_replace: bool = False

    @property
    def name(self) -> str:
        """The attribute as users write it: `disk[0].size`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens to one resource instance.

    Attributes:
        address: Where it is in the configuration.
        kind: The type of the resource.
        name: Its label.
        action: What happens.
        reason: Why, in the engine's word, where it says.
        before: The values it has, secrets masked; None when it does not exist.
        after: The values it will have, secrets and unknown ones masked; None when it goes.
        differences: The attributes that change.
        moved_from: The address that it had before.
        imported_as: The id under which it is taken over.
        deposed: The key of a former object of the same address that was replaced and is still there.
    """

    address: str
    kind: str
    name: str
    action: Action
    reason: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    differences: tuple[Difference, ...] = ()
    moved_from: str | None = None
    imported_as: str | None = None
    deposed: str | None = None

    @property
    def destroys(self) -> bool:
        """Whether what exists goes."""
        return self.action in (Action.DELETE, Action.REPLACE)

    @property
    def is_nothing(self) -> bool:
        """Whether neither the resource nor its place in the state changes."""
        stays = self.moved_from is None and self.imported_as is None
        return stays and self.action in (Action.NOTHING, Action.READ)

    @property
    def is_unfinished(self) -> bool:
        """Whether the making of what exists failed, which is why the engine wants to replace it."""
        return self.reason == _TAINTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a plan does, and what it found changed by others.

    Attributes:
        planned: What happens to each resource.
        drifted: What others changed.
        outputs: The names of the outputs that get other values.
    """

    planned: tuple[Change, ...]
    drifted: tuple[Change, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether applying would change nothing: a resource that is only moved or imported is a change."""
        return not self.outputs and all(change.is_nothing for change in self.planned)

    def count(self, *actions: Action) -> int:
        """Return how many resources one of these happens to."""
        return sum(change.action in actions for change in self.planned)

    def redact(self, redact: Callable[[str], str]) -> Changes:
        """Return the same with secrets masked in what is shown: others may have written one down anywhere."""
        return Changes(
            planned=tuple(_redact(change, redact) for change in self.planned),
            drifted=tuple(_redact(change, redact) for change in self.drifted),
            outputs=self.outputs,
        )


def _redact(change: Change, redact: Callable[[str], str]) -> Change:
    shown = tuple(
        replace(one, before=_mask(one.before, redact), after=_mask(one.after, redact))
        for one in change.differences
    )
    return replace(change, differences=shown)


def _mask(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _mask(one, redact) for key, one in value.items()}
    return [_mask(one, redact) for one in value] if isinstance(value, list) else value


def read_changes(document: Mapping[str, Any]) -> Changes:
    """Read the engine's JSON of a saved plan.

    Raises:
        EngineBrokenError: It has a form that is not known.
    """
    try:
        planned = _changes(document, "resource_changes")
        drifted = _changes(document, "resource_drift")
        outputs = document.get("output_changes", {})
        changed = tuple(sorted(name for name, one in outputs.items() if one["actions"] != ["no-op"]))
    except (KeyError, TypeError, AttributeError) as err:
        raise EngineBrokenError("The engine described a plan in a form that is not known.") from err
    return Changes(planned=planned, drifted=drifted, outputs=changed)


def _changes(document: Mapping[str, Any], key: str) -> tuple[Change, ...]:
    found = (_change(entry) for entry in document.get(key, ()) if entry["mode"] == "managed")
    return tuple(sorted(found, key=lambda change: change.address))


def _change(entry: Mapping[str, Any]) -> Change:
    change = entry["change"]
    action = _ACTIONS[tuple(change["actions"])]
    replacing = {tuple(path) for path in change.get("replace_paths") or ()}
    before = _mark(change["before"], change.get("before_sensitive"), None)
    # Of what goes, the engine says that nothing is unknown, which is not the same as that nothing is left.
    unknown = change.get("after_unknown") or None
    after = _mark(change["after"], change.get("after_sensitive"), unknown)
    importing = change.get("importing") or {}
    return Change(
        address=entry["address"],
        kind=entry["type"],
        name=entry["name"],
        action=action,
        reason=entry.get("action_reason"),
        before=before,
        after=after,
        differences=tuple(_differences(change, replacing)),
        moved_from=entry.get("previous_address"),
        imported_as=importing.get("id"),
        deposed=entry.get("deposed") or None,
    )


def _mark(value: Any, sensitive: Any, unknown: Any) -> Any:
    """Return a value with every secret and every unknown part replaced by its mark."""
    if sensitive is True:
        return SENSITIVE
    if unknown is True:
        return UNKNOWN
    if isinstance(value, dict) or isinstance(unknown, dict):
        keys = {**(value or {}), **(unknown if isinstance(unknown, dict) else {})}
        return {key: _mark((value or {}).get(key), _at(sensitive, key), _at(unknown, key)) for key in keys}
    if isinstance(value, list) or isinstance(unknown, list):
        length = max(len(value or ()), len(unknown) if isinstance(unknown, list) else 0)
        return [_mark(_at(value, i), _at(sensitive, i), _at(unknown, i)) for i in range(length)]
    return value


def _at(tree: Any, key: str | int) -> Any:
    """Return a part of a value or mask, None where it has none; a mask of True is true all the way down."""
    if tree is True:
        return True
    if isinstance(tree, dict):
        # A mask of a list may name the few of its parts that it is for.
        return tree.get(key)
    if isinstance(tree, list) and isinstance(key, int) and key < len(tree):
        return tree[key]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """The two sides of one value, with their masks."""

    before: Any
    after: Any
    before_sensitive: Any
    after_sensitive: Any
    unknown: Any

    def at(self, key: str | int) -> _Pair:
        return _Pair(
            before=_at(self.before, key),
            after=_at(self.after, key),
            before_sensitive=_at(self.before_sensitive, key),
            after_sensitive=_at(self.after_sensitive, key),
            unknown=_at(self.unknown, key),
        )

    def keys(self) -> list[str | int] | None:
        """Return the parts of the value, None when it is to be taken as a whole."""
        if True in (self.unknown, self.before_sensitive, self.after_sensitive):
            return None
        sides = [side for side in (self.before, self.after, self.unknown) if side not in (None, False)]
        if sides and all(isinstance(side, dict) for side in sides):
            return sorted({key for side in sides for key in side})
        if sides and all(isinstance(side, list) for side in sides):
            return list(range(max(len(side) for side in sides)))
        return None


def _differences(change: Mapping[str, Any], replacing: set[Path]) -> Iterator[Difference]:
    if change["before"] is None or change["after"] is None:
        return
    pair = _Pair(
        before=change["before"],
        after=change["after"],
        before_sensitive=change.get("before_sensitive"),
        after_sensitive=change.get("after_sensitive"),
        unknown=change.get("after_unknown"),
    )
    yield from _compare((), pair, replacing)


def _compare(path: Path, pair: _Pair, replacing: set[Path]) -> Iterator[Difference]:
    keys = pair.keys()
    if keys is not None:
        for key in keys:
            yield from _compare((*path, key), pair.at(key), replacing)
    elif pair.unknown is True or pair.before != pair.after:
        yield Difference(
            path=path,
            before=_mark(pair.before, pair.before_sensitive, None),
            after=_mark(pair.after, pair.after_sensitive, pair.unknown),
            forces_replace=any(path[: len(rule)] == rule for rule in replacing),
        )
