"""Which targets a pull request changes, of every source, and why; stacks are selected by what they read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.git.compare import Comparison
from stackyard.gitops.model import ChangedTarget
from stackyard.gitops.site_targets import find_site_targets, list_applied
from stackyard.sources.stacks.kinds import KIND as STACK
from stackyard.sources.stacks.order import build_whole_graph
from stackyard.sources.stacks.repository import NoStacksError, find_stacks
from stackyard.sources.stacks.selection import select_changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.model import Checkout
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore

__all__ = ["TargetChanges", "find_changed_targets"]

_MOST_REASONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChanges:
    """What a pull request changes.

    Attributes:
        targets: The targets, in the order in which they are applied.
        takes_outputs: By target, those of the same pull request that it takes outputs from.
        paths: Every file that differs, from the top of the repository.
    """

    targets: tuple[ChangedTarget, ...]
    takes_outputs: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]


async def find_changed_targets(
    checkouts: Checkouts, checkout: Checkout, base: str, store: ChosenStore
) -> TargetChanges:
    """Return what the files of a checkout change against a commit of the base branch.

    Args:
        checkouts: The commits of the repository.
        checkout: The files of the merge.
        base: The commit to compare with.
        store: Where it is recorded what was applied.

    Raises:
        InvalidInputError: stackyard.yaml is not valid, or stacks come after each other in a circle.
        GitError: git cannot say what changed.
        StoreError: The store cannot say what was applied.
    """
    git = Comparison(top=checkouts.mirror)
    differ = (await git.list_changes([base], checkout.commit))[base] or {}
    gone = frozenset(path for path, one in differ.items() if not one.new)
    paths = tuple(sorted(differ))
    stacks, takes = await _find_stacks(checkout, base, paths, store)
    others = await asyncio.to_thread(find_site_targets, checkout.folder, paths, gone, store)
    return TargetChanges(targets=(*others, *stacks), takes_outputs=takes, paths=paths)


# --- Stacks


async def _find_stacks(
    checkout: Checkout, base: str, paths: tuple[str, ...], store: ChosenStore
) -> tuple[tuple[ChangedTarget, ...], dict[str, tuple[str, ...]]]:
    try:
        repository = find_stacks(checkout.folder)
    except NoStacksError:
        # The last one may be gone.
        repository = find_stacks(checkout.folder, may_be_empty=True)
    selected = await select_changed(repository, base)
    reasons = {one.name: tuple(map(str, one.reasons[:_MOST_REASONS])) for one in selected}
    removed = [one.name for one in selected if one.stack is None]
    _add_takers(repository, reasons)
    broken = [name for name in repository.broken if any(f"/{name}/" in f"/{path}" for path in paths)]
    names = [*(name for name in repository.stacks if name in reasons), *broken]
    graph = build_whole_graph(repository)
    ordered = [name for name in graph.order if name in names]
    targets = [
        ChangedTarget(
            target=f"{STACK}:{name}",
            reasons=reasons.get(name, ("its files are not valid",)),
            after=tuple(f"{STACK}:{one}" for one in graph.ancestors(name) if one in names),
        )
        for name in ordered
    ]
    targets += await _list_removed(store, removed, reasons, tuple(one.target for one in targets))
    takes = {
        f"{STACK}:{name}": tuple(f"{STACK}:{one}" for one in _givers(repository, name) if one in names)
        for name in ordered
        if name in repository.stacks
    }
    return tuple(targets), {name: givers for name, givers in takes.items() if givers}


async def _list_removed(
    store: ChosenStore,
    names: Sequence[str],
    reasons: Mapping[str, tuple[str, ...]],
    others: tuple[str, ...],
) -> list[ChangedTarget]:
    """Return the stacks that are gone and were applied; what others took from them goes last."""
    applied = await asyncio.to_thread(list_applied, store) if names else ()
    known = {one.name.partition("@")[0] for one in applied if one.kind == STACK}
    return [
        ChangedTarget(target=f"{STACK}:{name}", reasons=reasons[name], after=others, is_removed=True)
        for name in names
        if name in known
    ]


def _givers(repository: StackRepository, name: str) -> list[str]:
    """Return the stacks that one takes outputs from."""
    return [one.stack for one in repository.stacks[name].settings.after if one.outputs]


def _add_takers(repository: StackRepository, reasons: dict[str, tuple[str, ...]]) -> None:
    """Select what takes outputs of a selected stack too: it may change once that one is applied."""
    is_new = True
    while is_new:
        is_new = False
        for name in repository.stacks:
            first = [one for one in _givers(repository, name) if one in reasons]
            if first and name not in reasons:
                reasons[name] = tuple(f"takes outputs of {STACK}:{one}" for one in first)
                is_new = True
