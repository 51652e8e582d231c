"""Which stacks a change touches, and why: by what they read, never by where a file is alone."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stackyard.sources.stacks.changed_files import Changes, FileChange, recall_changes
from stackyard.sources.stacks.kinds import is_code
from stackyard.sources.stacks.matching import ReadIndex
from stackyard.sources.stacks.reads import read_stack
from stackyard.sources.stacks.removed import find_removed
from stackyard.sources.stacks.untracked import may_be_untracked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["Reason", "ReasonKind", "SelectedStack", "Selection", "select", "select_changed", "select_known"]

REPOSITORY_FILE = "stackyard.yaml"
# By commit, what stackyard.yaml said; None where it was not valid.
OldSettings = dict[str, dict[str, Any] | None]


class ReasonKind(enum.StrEnum):
    """Why a stack is selected."""

    CHANGED = "changed"
    UNRESOLVED = "cannot prove unchanged"
    NEVER_APPLIED = "never applied"
    REMOVED = "removed"


class Reason(NamedTuple):
    """One way from a change to a stack.

    Attributes:
        kind: Why.
        chain: What leads from the change to the stack: `modules/vm/main.tf`, `modules/vm`, `stacks/web`.
        detail: The expression and the line that reads the first of them, or what else there is to say.
    """

    kind: ReasonKind
    chain: tuple[str, ...]
    detail: str = ""

    def __str__(self) -> str:
        text = " -> ".join(self.chain)
        shown = text if self.kind is ReasonKind.CHANGED else f"{self.kind}: {text}"
        return f"{shown} ({self.detail})" if self.detail else shown


class SelectedStack(NamedTuple):
    """A stack that a change touches.

    Attributes:
        name: Its name.
        stack: The stack; None for one that was removed.
        reasons: Every way from a change to it.
        path: Its folder from the top of the repository.
    """

    name: str
    stack: Stack | None
    reasons: tuple[Reason, ...]
    path: str = ""


class Selection(NamedTuple):
    """What was selected, and what the stacks were compared with.

    Attributes:
        stacks: Sorted by name.
        base: The commit; empty on the default branch, where each stack has its own.
        base_name: How to call it.
    """

    stacks: tuple[SelectedStack, ...]
    base: str
    base_name: str


async def select_changed(
    repository: StackRepository, base: str | None = None, applied: Mapping[str, str] | None = None
) -> tuple[SelectedStack, ...]:
    """Return the stacks that differ from what they are compared with, removed ones too, sorted by name.

    Args:
        repository: The stacks.
        base: A commit or branch; what it and HEAD have in common counts. The default branch when absent.
        applied: By the name of a stack the commit that was last applied; used on the default branch.

    Raises:
        BaseNotFoundError: There is nothing to compare with: no git, no commit, no default branch.
        GitError: git failed, or does not trust the repository.
    """
    return (await select(repository, base, applied)).stacks


async def select(
    repository: StackRepository, base: str | None = None, applied: Mapping[str, str] | None = None
) -> Selection:
    """Do what `select_changed` does, and say what the stacks were compared with."""
    from stackyard.sources.stacks.changes import find_changes  # lazy: asyncio and git, where they are needed

    last = applied or {}
    changes = await find_changes(repository.tree, repository.cache, base, last.values())
    selector = _Selector(repository, changes, last)
    selector.old = await _read_old_settings(repository, changes, f"{selector.prefix}{REPOSITORY_FILE}")
    found = selector.run()
    repository.cache.save()
    return found


def select_known(repository: StackRepository, base: str | None = None) -> Selection | None:
    """Do the same without running git, from what it said before; None where it has to be asked."""
    changes = recall_changes(repository.tree, repository.cache, base)
    if changes is None:
        return None
    selector = _Selector(repository, changes, {})
    if f"{selector.prefix}{REPOSITORY_FILE}" in changes.files:
        return None
    if may_be_untracked(repository, selector.reads):
        return None
    return selector.run()


async def _read_old_settings(repository: StackRepository, changes: Changes, file: str) -> OldSettings:
    """Return what stackyard.yaml said at each commit at which it said something else."""
    commits = [changes.base] if changes.base and file in changes.files else []
    commits += [commit for commit, files in changes.by_commit.items() if files is not None and file in files]
    if not commits:
        return {}
    from stackyard.sources.stacks.old_settings import read_old_repository  # lazy: only where it changed

    top = Path(repository.tree.top)
    return {commit: await read_old_repository(top, commit, file) for commit in commits}


class _Selector:
    """Makes a selection of changes."""

    def __init__(self, repository: StackRepository, changes: Changes, applied: Mapping[str, str]) -> None:
        self.repository = repository
        self.changes = changes
        self.applied = applied
        self.old: OldSettings = {}
        self.prefix = repository.prefix
        self.reads = {name: read_stack(repository, stack) for name, stack in repository.stacks.items()}

    def run(self) -> Selection:
        if self.changes.base:
            found = self.match(self.changes.files, self.changes.base, list(self.repository.stacks))
        else:
            found = self.select_by_commit()
        self.add_unresolved(found)
        stacks = self.repository.stacks
        selected = [
            SelectedStack(name, stacks[name], tuple(reasons), stacks[name].path)
            for name, reasons in found.items()
        ]
        selected += self.removed()
        ordered = tuple(sorted(selected, key=lambda one: one.name))
        return Selection(ordered, self.changes.base, self.changes.base_name)

    def match(
        self, files: Mapping[str, FileChange], commit: str, names: Sequence[str]
    ) -> dict[str, list[Reason]]:
        found: dict[str, list[Reason]] = {}
        if files:
            index = ReadIndex(self.repository, self.reads, self.prefix, names)
        for path in sorted(files):
            for name, chain, detail in index.readers(path, is_tracked=path not in self.changes.untracked):
                found.setdefault(name, []).append(Reason(ReasonKind.CHANGED, chain, detail))
        if commit in self.old:
            self.add_defaults(found, self.old[commit], names)
        return found

    def add_defaults(
        self, found: dict[str, list[Reason]], old: dict[str, Any] | None, names: Sequence[str]
    ) -> None:
        """Add the stacks that a changed default of stackyard.yaml holds for."""
        before = None if old is None else old.get("defaults") or {}
        now = self.repository.defaults
        for name in names:
            chain = (f"{self.prefix}{REPOSITORY_FILE}", self.repository.stacks[name].path)
            if before is None:
                detail = "what it said before is not valid"
                found.setdefault(name, []).append(Reason(ReasonKind.UNRESOLVED, chain, detail))
                continue
            keys = {key for key in {*before, *now} if before.get(key) != now.get(key)}
            keys -= set(self.repository.own.get(name, ()))
            if keys:
                detail = f"defaults: {', '.join(sorted(keys))}"
                found.setdefault(name, []).append(Reason(ReasonKind.CHANGED, chain, detail))

    def select_by_commit(self) -> dict[str, list[Reason]]:
        groups: dict[str, list[str]] = {}
        found: dict[str, list[Reason]] = {}
        for name, stack in self.repository.stacks.items():
            commit = self.applied.get(name)
            if commit is None:
                found[name] = [Reason(ReasonKind.NEVER_APPLIED, (stack.path,))]
            elif self.changes.by_commit.get(commit) is None:
                detail = f"the commit {commit[:12]}, which was applied last, is not in this repository"
                found[name] = [Reason(ReasonKind.UNRESOLVED, (stack.path,), detail)]
            else:
                groups.setdefault(commit, []).append(name)
        for commit, names in groups.items():
            found |= self.match(self.changes.by_commit[commit] or {}, commit, names)
        return found

    def add_unresolved(self, found: dict[str, list[Reason]]) -> None:
        for name, reads in self.reads.items():
            for where, text in reads.unresolved:
                chain = (where, self.repository.stacks[name].path)
                found.setdefault(name, []).append(Reason(ReasonKind.UNRESOLVED, chain, text))

    def removed(self) -> list[SelectedStack]:
        files = dict(self.changes.files)
        for changed in self.changes.by_commit.values():
            files.update(changed or {})
        gone = [path for path, one in files.items() if not one.new and is_code(path.rpartition("/")[2])]
        names = dict(find_removed(self.repository, self.old, gone, self.prefix)) if gone else {}
        # One that was applied and is nowhere any more, whatever the commits say.
        names |= {
            name: ""
            for name in self.applied
            if not self.changes.base
            and name not in {*self.repository.stacks, *self.repository.broken, *names}
        }
        reason = "all of its code is gone"
        return [
            SelectedStack(name, None, (Reason(ReasonKind.REMOVED, (path or name,), reason),), path)
            for name, path in names.items()
        ]
