"""What changed between two contents of a state: resources, attributes and outputs, no secret shown.

Values are compared before they are masked, so a change of a secret is still a change.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.engine.changes import Difference, Path
from stackyard.state.inside import (
    Instance,
    Mask,
    StateView,
    make_mask,
    mask,
    read_view,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OutputChange", "ResourceChange", "StateChangeKind", "StateDifference", "compare_states"]


class StateChangeKind(enum.StrEnum):
    """What happened between the two."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """What happened to one instance of a resource.

    Attributes:
        address: Where it is.
        type: The type of the resource.
        kind: What happened.
        attributes: The attributes that differ; all of them where it was added or removed.
        notes: What else is different, in words: it is tainted, has another provider.
    """

    address: str
    type: str
    kind: StateChangeKind
    attributes: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChange:
    """What happened to an output, its values masked."""

    name: str
    kind: StateChangeKind
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifference:
    """Everything that differs between two contents.

    Attributes:
        resources: The instances that differ, in order of their addresses.
        outputs: The outputs that differ, in order of their names.
        is_other_lineage: Whether the two are not contents of the same state.
    """

    resources: tuple[ResourceChange, ...]
    outputs: tuple[OutputChange, ...]
    is_other_lineage: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not self.resources and not self.outputs

    def count(self, kind: StateChangeKind) -> int:
        """Return how many instances this happened to."""
        return sum(change.kind is kind for change in self.resources)


def compare_states(before: bytes, after: bytes) -> StateDifference:
    """Compare two contents.

    Raises:
        BodyRefusedError: One of them is no state.
        EncryptedStateError: The engine encrypted one of them.
    """
    old, new = read_view(before), read_view(after)
    redact = make_mask((old, new))
    return StateDifference(
        resources=tuple(_resources(old, new, redact)),
        outputs=tuple(_outputs(old, new, redact)),
        is_other_lineage=old.lineage != new.lineage,
    )


def _resources(old: StateView, new: StateView, redact: Mask) -> Iterator[ResourceChange]:
    for address in sorted({*old.instances, *new.instances}):
        was, now = old.instances.get(address), new.instances.get(address)
        either = now or was
        if either is None:
            continue
        attributes = tuple(_attributes(was, now, redact))
        notes = tuple(_notes(was, now))
        if was is not None and now is not None and not attributes and not notes:
            continue
        yield ResourceChange(
            address=address, type=either.type, kind=_kind(was, now), attributes=attributes, notes=notes
        )


def _kind(was: object | None, now: object | None) -> StateChangeKind:
    if was is None:
        return StateChangeKind.ADDED
    return StateChangeKind.REMOVED if now is None else StateChangeKind.CHANGED


def _notes(was: Instance | None, now: Instance | None) -> Iterator[str]:
    if was is None or now is None:
        return
    if was.status != now.status:
        yield f"is {now.status} now" if now.status else f"is no longer {was.status}"
    if was.provider != now.provider:
        yield f"has another provider: {now.provider}"


def _attributes(was: Instance | None, now: Instance | None, redact: Mask) -> Iterator[Difference]:
    either = now or was
    if either is None:
        return
    # What one side hides is hidden on both.
    hidden = frozenset[Path]().union(*(side.sensitive for side in (was, now) if side is not None))
    owner = dataclasses.replace(either, sensitive=hidden)
    before = {} if was is None else was.attributes
    after = {} if now is None else now.attributes
    yield from _compare((), before, after, owner, redact)


def _compare(path: Path, before: Any, after: Any, owner: Instance, redact: Mask) -> Iterator[Difference]:
    if before == after:
        return
    # A value that is hidden as a whole is compared as a whole: its parts are no one's business.
    keys = None if owner.hides(path) else _keys(before, after)
    if keys is not None:
        for key in keys:
            yield from _compare((*path, key), _at(before, key), _at(after, key), owner, redact)
    else:
        shown = (None if side is None else mask(side, path, owner, redact) for side in (before, after))
        yield Difference(path=path, before=next(shown), after=next(shown))


def _keys(before: Any, after: Any) -> list[str | int] | None:
    """Return the parts of a value, None where it is compared as a whole."""
    sides = [side for side in (before, after) if side is not None]
    if sides and all(isinstance(side, dict) for side in sides):
        return sorted({key for side in sides for key in side})
    if sides and all(isinstance(side, list) for side in sides):
        return list(range(max(len(side) for side in sides)))
    return None


def _at(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None


def _outputs(old: StateView, new: StateView, redact: Mask) -> Iterator[OutputChange]:
    for name in sorted({*old.outputs, *new.outputs}):
        was, now = old.outputs.get(name), new.outputs.get(name)
        if was == now:
            continue
        is_hidden = any(side is not None and side.is_hidden for side in (was, now))
        yield OutputChange(
            name=name,
            kind=_kind(was, now),
            before=None if was is None else was.format(redact, is_hidden=is_hidden),
            after=None if now is None else now.format(redact, is_hidden=is_hidden),
        )
