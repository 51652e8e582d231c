"""Which stacks a command works on, when it works on several."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.stacks.kinds import KIND
from stackyard.sources.stacks.selection import select_changed
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore
    from stackyard.state.targets import TargetRecord

__all__ = [
    "SelectedStacks",
    "applied_commits",
    "find_removed",
    "list_removed",
    "match_stacks",
    "read_applied",
    "select_stacks",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedStacks:
    """The stacks that a command works on.

    Attributes:
        names: Those that are there.
        reasons: Why each was selected, where it was for a change.
        removed: What was applied of stacks whose folder is gone.
    """

    names: tuple[str, ...]
    reasons: Mapping[str, tuple[str, ...]]
    removed: tuple[TargetRecord, ...] = ()


async def select_stacks(
    repository: StackRepository, store: ChosenStore, values: Mapping[str, Any]
) -> SelectedStacks:
    """Return the stacks that the options select.

    Raises:
        UsageError: A layer or tag does not exist, or nothing says which stacks.
        GitError: git cannot say what changed.
    """
    names = match_stacks(repository, values)
    records = read_applied(store)
    removed = list_removed(repository, records)
    if not values.get("changed"):
        return SelectedStacks(names=tuple(names), reasons={}, removed=removed if _is_all(values) else ())
    changed = await select_changed(repository, values.get("base"), applied_commits(records))
    reasons = {one.name: tuple(map(str, one.reasons)) for one in changed if one.stack is not None}
    chosen = tuple(name for name in names if name in reasons or name in repository.broken)
    return SelectedStacks(names=chosen, reasons=reasons, removed=removed)


def match_stacks(repository: StackRepository, values: Mapping[str, Any]) -> list[str]:
    """Return the stacks that tags and layers select, whatever has changed; the store is not asked.

    Raises:
        UsageError: A layer or tag does not exist, or the options do not fit together.
    """
    if values.get("base") and not values.get("changed"):
        raise UsageError("--base says what --changed compares with: give both.")
    names = [*repository.stacks, *repository.broken]
    names = [name for name in names if _matches(repository, name, values)]
    _require_known(repository, values)
    return names


def _is_all(values: Mapping[str, Any]) -> bool:
    return bool(values.get("all_stacks")) and not values.get("tags") and not values.get("layers")


def _matches(repository: StackRepository, name: str, values: Mapping[str, Any]) -> bool:
    stack = repository.stacks.get(name)
    tags, layers = values.get("tags") or (), values.get("layers") or ()
    if stack is None:
        return not tags and not layers
    return (not tags or bool(set(tags) & set(stack.settings.tags))) and (not layers or stack.layer in layers)


def _require_known(repository: StackRepository, values: Mapping[str, Any]) -> None:
    stacks = repository.stacks.values()
    for option, given, known in (
        ("layer", values.get("layers") or (), {*repository.layers, *(one.layer for one in stacks)}),
        ("tag", values.get("tags") or (), {tag for one in stacks for tag in one.settings.tags}),
    ):
        for word in given:
            if word not in known:
                listed = ", ".join(sorted(filter(None, known))) or "none"
                raise UsageError(
                    f"No stack has the {option} `{word}`.{did_you_mean(word, known)} There are: {listed}."
                )


def applied_commits(records: Iterable[TargetRecord]) -> dict[str, str]:
    """Return by name the commit of each stack that was applied in whole, in the default workspace."""
    return {record.name: record.commit for record in records if record.commit and "@" not in record.name}


def read_applied(store: ChosenStore) -> tuple[TargetRecord, ...]:
    """Return what was applied of all stacks, as the registry has it.

    Raises:
        StoreError: The store cannot say.
    """
    with contextlib.closing(store.read()) as objects:
        return tuple(one for one in StateService(objects).targets.all() if one.kind == KIND)


def find_removed(repository: StackRepository, store: ChosenStore, named: str) -> TargetRecord | None:
    """Return what was applied of a stack whose folder is gone; None where it is there, or was never applied.

    Raises:
        StoreError: The store cannot say.
    """
    wanted = named.removeprefix(f"{KIND}:")
    name = wanted.partition("@")[0]
    if name in repository.stacks or name in repository.broken:
        return None
    return next((one for one in list_removed(repository, read_applied(store)) if one.name == wanted), None)


def list_removed(repository: StackRepository, records: tuple[TargetRecord, ...]) -> tuple[TargetRecord, ...]:
    """Return what was applied of stacks that are no longer there, and was not destroyed."""
    known = {*repository.stacks, *repository.broken}
    return tuple(one for one in records if one.name.partition("@")[0] not in known and not one.is_destroyed)
