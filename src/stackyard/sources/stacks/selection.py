"""Which stacks a change touches, and why: by what they read, never by where a file is alone."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.stacks.changes import BaseNotFoundError, Changes, find_changes
from stackyard.sources.stacks.kinds import is_code
from stackyard.sources.stacks.matching import ReadIndex
from stackyard.sources.stacks.reads import read_stack, reader_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.git.compare import ChangedFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = [
    "BaseNotFoundError",
    "Reason",
    "ReasonKind",
    "SelectedStack",
    "Selection",
    "select",
    "select_changed",
]


class ReasonKind(enum.StrEnum):
    """Why a stack is selected."""

    CHANGED = "changed"
    UNRESOLVED = "cannot prove unchanged"
    NEVER_APPLIED = "never applied"
    REMOVED = "removed"
    BROKEN = "not valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One way from a change to a stack.

    Attributes:
        kind: Why.
        chain: What leads from the change to the stack: `modules/vm/main.tf`, `modules/vm`, `stacks/web`.
        detail: The file and line that the last step but one is at, or what else there is to say.
    """

    kind: ReasonKind
    chain: tuple[str, ...]
    detail: str = ""

    def __str__(self) -> str:
        text = " -> ".join(self.chain)
        shown = (
            text if self.kind is ReasonKind.CHANGED else f"{self.kind}: {text}" if text else f"{self.kind}"
        )
        return f"{shown} ({self.detail})" if self.detail else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedStack:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was selected, and what the stacks were compared with."""

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
    changes = await find_changes(repository.tree, base, (applied or {}).values())
    found = await _Selector(repository, changes, applied or {}).run()
    repository.cache.save()
    return Selection(stacks=found, base=changes.base, base_name=changes.base_name)


class _Selector:
    """Makes a selection of changes."""

    def __init__(self, repository: StackRepository, changes: Changes, applied: Mapping[str, str]) -> None:
        self.repository = repository
        self.changes = changes
        self.applied = applied
        self.reader = reader_of(repository)
        prefix = os.path.relpath(repository.root, repository.tree.top)
        self.prefix = "" if prefix == "." else f"{prefix}/"
        self.reads = {
            name: read_stack(repository, stack, self.reader) for name, stack in repository.stacks.items()
        }

    async def run(self) -> tuple[SelectedStack, ...]:
        found = self.select_by_commit() if not self.changes.base else self.match(self.changes.files, None)
        self.add_unresolved(found)
        self.add_broken(found)
        stacks = self.repository.stacks
        selected = [
            SelectedStack(
                name=name,
                stack=stacks.get(name),
                reasons=tuple(reasons),
                path=stacks[name].path if name in stacks else "",
            )
            for name, reasons in found.items()
        ]
        selected += await self.removed()
        return tuple(sorted(selected, key=lambda one: one.name))

    def match(self, files: Mapping[str, ChangedFile], names: Sequence[str] | None) -> dict[str, list[Reason]]:
        index = ReadIndex(self.repository, self.reads, self.prefix, names)
        found: dict[str, list[Reason]] = {}
        for path in sorted(files):
            for name, chain, detail in index.readers(path, is_tracked=path not in self.changes.untracked):
                reason = Reason(kind=ReasonKind.CHANGED, chain=chain, detail=detail)
                found.setdefault(name, []).append(reason)
        return found

    def select_by_commit(self) -> dict[str, list[Reason]]:
        groups: dict[str, list[str]] = {}
        found: dict[str, list[Reason]] = {}
        for name, stack in self.repository.stacks.items():
            commit = self.applied.get(name)
            if commit is None:
                found[name] = [Reason(kind=ReasonKind.NEVER_APPLIED, chain=(stack.path,))]
            elif self.changes.by_commit.get(commit) is None:
                detail = f"the commit {commit[:12]}, which was applied last, is not in this repository"
                found[name] = [Reason(kind=ReasonKind.UNRESOLVED, chain=(stack.path,), detail=detail)]
            else:
                groups.setdefault(commit, []).append(name)
        for commit, names in groups.items():
            found |= self.match(self.changes.by_commit[commit] or {}, names)
        return found

    def add_unresolved(self, found: dict[str, list[Reason]]) -> None:
        for name, reads in self.reads.items():
            for where, text in reads.unresolved:
                reason = Reason(kind=ReasonKind.UNRESOLVED, chain=(where, reads_folder(reads)), detail=text)
                found.setdefault(name, []).append(reason)

    def add_broken(self, found: dict[str, list[Reason]]) -> None:
        for name, error in self.repository.broken.items():
            reason = Reason(kind=ReasonKind.BROKEN, chain=(name,), detail=error.detail)
            found.setdefault(name, []).append(reason)
        for name in self.repository.broken:
            del found[name]

    async def removed(self) -> list[SelectedStack]:
        from stackyard.sources.stacks.removed import find_removed  # lazy: it needs this module's values

        files: dict[str, Any] = dict(self.changes.files)
        for changed in self.changes.by_commit.values():
            files.update(changed or {})
        gone = [path for path, one in files.items() if not one.new and is_code(path.rpartition("/")[2])]
        if not gone:
            return []
        found = await find_removed(self.repository, self.changes, gone, self.prefix)
        return [
            SelectedStack(
                name=name,
                stack=None,
                reasons=(Reason(kind=ReasonKind.REMOVED, chain=(path,), detail="all of its code is gone"),),
                path=path,
            )
            for name, path in found
        ]


def reads_folder(reads: Any) -> str:
    """Return the folder of the stack that reads something: the one that nothing calls."""
    return next((folder for folder, link in reads.folders.items() if not link[0]), "")
