"""Which targets a pull request changes, of every source, and why.

Stacks are selected by what they read. Each env, manifest and hypervisor of a site has a file of its own; what
they share selects all of them, so that nothing is missed: their plans show which do not change.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stackyard.clients.git.compare import Comparison
from stackyard.gitops.model import ChangedTarget
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.names import find_clusters
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.sources.stacks.kinds import KIND as STACK
from stackyard.sources.stacks.order import build_whole_graph
from stackyard.sources.stacks.repository import NoStacksError, find_stacks
from stackyard.sources.stacks.selection import select_changed
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.model import Checkout
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore

__all__ = ["TargetChanges", "find_changed_targets"]

# The folders of a site in which each file is a target, by the kind of it; in this order they are applied.
_KINDS = {"hypervisors": "hypervisor", "envs": "env", "manifests": "manifest"}
# What is read by none of them.
_DOCUMENTATION = frozenset((".md", ".txt", ".rst", ".png", ".svg"))
_CLUSTERS = "clusters"
_DEPLOYMENT_FILE = "deployment.yaml"
_MOST_REASONS = 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


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
    others = (*_of_site(checkout.folder, paths, gone), *_of_clusters(checkout.folder, paths))
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
    known = await asyncio.to_thread(_list_applied, store) if names else frozenset[str]()
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


def _list_applied(store: ChosenStore) -> frozenset[str]:
    """Return the stacks that were applied and not destroyed."""
    with contextlib.closing(store.read()) as objects:
        records = StateService(objects).targets.all()
        return frozenset(
            one.name.partition("@")[0] for one in records if one.kind == STACK and not one.is_destroyed
        )


# --- Sites, deployment objects, clusters


def _of_site(top: Path, paths: tuple[str, ...], gone: frozenset[str]) -> tuple[ChangedTarget, ...]:
    """Return the targets of a site or of a deployment object at the top of a repository."""
    found: dict[str, ChangedTarget] = {}
    if (top / _DEPLOYMENT_FILE).is_file():
        reasons = [path for path in paths if _is_of_site(path)]
        if reasons:
            found["deployment"] = ChangedTarget(target="deployment", reasons=tuple(reasons[:_MOST_REASONS]))
    if (top / SITE_FILE).is_file() or SITE_FILE in gone:
        for one in _of_files(top, paths, gone):
            found[one.target] = one
    before: list[str] = []
    ordered = []
    for one in found.values():
        ordered.append(replace(one, after=tuple(before)) if not one.target.startswith("env:") else one)
        before += [one.target] if one.target.startswith("hypervisor:") else []
    return tuple(ordered)


def _of_clusters(top: Path, paths: tuple[str, ...]) -> Iterator[ChangedTarget]:
    """Yield the clusters whose folders have something else in them, one at the top of the repository too."""
    for name, cluster in find_clusters(top).items():
        folder = os.path.relpath(cluster.folder, top)
        if folder == ".":
            reasons = [path for path in paths if _is_of_site(path)]
        else:
            own = (path for path in paths if path.startswith(f"{folder}/"))
            reasons = [path for path in own if not _is_documentation(path)]
        if reasons:
            yield ChangedTarget(target=f"{CLUSTER}:{name}", reasons=tuple(reasons[:_MOST_REASONS]))


def _of_files(top: Path, paths: tuple[str, ...], gone: frozenset[str]) -> Iterator[ChangedTarget]:
    own = {path: target for path in paths if (target := _target_of(path)) is not None}
    shared = [path for path in paths if path not in own and _is_of_site(path)]
    for folder, kind in _KINDS.items():
        named = {target: path for path, target in own.items() if target.startswith(f"{kind}:")}
        there = {f"{kind}:{name}" for name in _stems(top / folder)}
        for target in sorted({*named, *(there if shared else ())}):
            path = named.get(target)
            reasons = (*((path,) if path else ()), *shared)[:_MOST_REASONS]
            yield ChangedTarget(target=target, reasons=reasons, is_removed=path in gone if path else False)


def _target_of(path: str) -> str | None:
    """Return the target that a file of a site describes."""
    place = PurePosixPath(path)
    if len(place.parts) != 2 or place.suffix != ".yaml" or not _NAME.fullmatch(place.stem):
        return None
    kind = _KINDS.get(place.parts[0])
    return None if kind is None else f"{kind}:{place.stem}"


def _is_of_site(path: str) -> bool:
    """Return whether targets of a site may read a file."""
    place = PurePosixPath(path)
    is_apart = place.parts[0] in ("stacks", "tofu", "infrastructure", "modules", _CLUSTERS, "docs", ".github")
    return not is_apart and not place.name.startswith(".git") and not _is_documentation(path)


def _is_documentation(path: str) -> bool:
    return PurePosixPath(path).suffix in _DOCUMENTATION


def _stems(folder: Path) -> Iterable[str]:
    return (path.stem for path in folder.glob("*.yaml") if _NAME.fullmatch(path.stem))
