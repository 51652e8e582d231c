"""Which targets of a site, of a deployment object and of clusters a pull request changes.

Each env, manifest and hypervisor has a file of its own. What they share selects all of them, so that nothing
is missed: their plans show which do not change. A manifest takes part on each host that it was applied to.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stackyard.gitops.model import ChangedTarget
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.names import find_clusters
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.state import StateService
from stackyard.state.inside import EncryptedStateError, read_view
from stackyard.state.refusals import StateDeletedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from stackyard.sources.store import ChosenStore
    from stackyard.state.targets import TargetRecord

__all__ = ["find_site_targets", "list_applied"]

_HYPERVISOR, _ENV, _MANIFEST = "hypervisor", "env", "manifest"
# The folders of a site in which each file is a target, by the kind of it; in this order they are applied.
_KINDS = {"hypervisors": _HYPERVISOR, "envs": _ENV, "manifests": _MANIFEST}
_NODES = "nodes"
# What is read by none of them.
_DOCUMENTATION = frozenset((".md", ".txt", ".rst", ".png", ".svg"))
_APART = frozenset(("stacks", "tofu", "infrastructure", "modules", "clusters", "docs", ".github", ".gitlab"))
_DEPLOYMENT_FILE = "deployment.yaml"
_MOST_REASONS = 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def list_applied(store: ChosenStore) -> tuple[TargetRecord, ...]:
    """Return what was applied and not destroyed.

    Raises:
        StoreError: The store cannot say.
    """
    with contextlib.closing(store.read()) as objects:
        service = StateService(objects)
        return tuple(one for one in service.targets.all() if not one.is_destroyed)


def _is_live(service: StateService, record: TargetRecord) -> bool:
    """Return whether the state of a target holds something."""
    try:
        content = service.contents.read(record.state)
        return content is not None and bool(read_view(content.body.data).instances)
    except StateDeletedError:
        return False
    except EncryptedStateError:
        return True


def find_site_targets(
    top: Path, paths: tuple[str, ...], gone: frozenset[str], store: ChosenStore
) -> tuple[ChangedTarget, ...]:
    """Return the targets that are no stacks, in the order in which they are applied.

    Args:
        top: The files of the merge.
        paths: What differs, from the top.
        gone: What of it is no longer there.
        store: Where it is recorded what was applied.

    Raises:
        InvalidInputError: Two clusters have the same name.
        StoreError: The store cannot say.
    """
    found: list[ChangedTarget] = []
    reasons = [path for path in paths if _is_of_site(path)]
    if (top / _DEPLOYMENT_FILE).is_file() and reasons:
        found.append(ChangedTarget(target="deployment", reasons=tuple(reasons[:_MOST_REASONS])))
    if (top / SITE_FILE).is_file() or SITE_FILE in gone:
        found += _of_files(top, paths, gone, store)
    before = tuple(one.target for one in found if one.target.startswith(f"{_HYPERVISOR}:"))
    ordered = (one if one.target in before else replace(one, after=before) for one in found)
    return (*ordered, *_of_clusters(top, paths))


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


def _of_files(
    top: Path, paths: tuple[str, ...], gone: frozenset[str], store: ChosenStore
) -> Iterator[ChangedTarget]:
    own = {target: path for path in paths if (target := _target_of(path)) is not None}
    shared = [path for path in paths if path not in own.values() and _is_of_site(path)]
    there = {kind: set(_stems(top / folder)) for folder, kind in _KINDS.items()}
    if not there[_HYPERVISOR] and any(path == SITE_FILE or path.startswith(f"{_NODES}/") for path in shared):
        # Where no file describes a node, it has what site.yaml makes on it.
        there[_HYPERVISOR] = set(_stems(top / _NODES))
    applied = list_applied(store) if own or shared else ()
    for kind, stems in there.items():
        named = {target for target in own if target.startswith(f"{kind}:")}
        all_of_it = {f"{kind}:{name}" for name in stems} if shared else set()
        for target in sorted(named | all_of_it):
            path = own.get(target, "")
            reasons = (*((path,) if path else ()), *shared)[:_MOST_REASONS]
            changed = ChangedTarget(target=target, reasons=reasons, is_removed=path in gone)
            yield from _place(changed, kind, applied, store)


def _place(
    changed: ChangedTarget, kind: str, applied: tuple[TargetRecord, ...], store: ChosenStore
) -> Iterator[ChangedTarget]:
    """Yield a target; a manifest for each of its hosts, and what is gone only where it was applied."""
    records = [one for one in applied if one.target == changed.target]
    if kind != _MANIFEST:
        if records or not changed.is_removed:
            yield changed
        return
    with contextlib.closing(store.read()) as objects:
        service = StateService(objects)
        hosts = sorted({one.node for one in records if _is_live(service, one)})
    for host in hosts:
        name = changed.target if len(hosts) == 1 else f"{changed.target}@{host}"
        yield replace(changed, target=name, host=host)


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
    is_apart = place.parts[0] in _APART or place.name.startswith(".git")
    return not is_apart and not _is_documentation(path) and path != "stackyard.yaml"


def _is_documentation(path: str) -> bool:
    return PurePosixPath(path).suffix in _DOCUMENTATION


def _stems(folder: Path) -> Iterable[str]:
    return (path.stem for path in folder.glob("*.yaml") if _NAME.fullmatch(path.stem))
