"""Paths that lead out of the checkout: through functions that read files, and through symbolic links."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING

from stackyard.clients.git.compare import Comparison
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.sources.stacks.kinds import KIND as STACK
from stackyard.sources.stacks.kinds import is_code, is_values
from stackyard.sources.stacks.reads import read_stack
from stackyard.sources.stacks.repository import find_stacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.model import Checkout
    from stackyard.gitops.targets import TargetChanges
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.stack_reads import StackReads

__all__ = ["find_paths"]

# What is below the top of a checkout, and is not of the repository.
_NOT_OURS = (".stackyard", ".git", ".terraform")
# A value that may lead an expression of the base branch out of the checkout.
_WAY_OUT = re.compile(rb"\.\.|[\"'\s](?:/|~)[^/\s]")
_DATA = (".json", ".yaml", ".yml", ".toml", ".csv", ".tpl", ".tftpl")
_LONGEST = 200


async def find_paths(
    checkouts: Checkouts, checkout: Checkout, base: str, changes: TargetChanges
) -> Mapping[str, tuple[CodeFinding, ...]]:
    """Return by target the paths of the merge that lead out, and of which the base branch has none.

    Args:
        checkouts: The commits of the repository.
        checkout: The files of the merge.
        base: The commit of the base branch.
        changes: What the pull request changes.

    Raises:
        GitError: The base branch cannot be read.
    """
    links = await asyncio.to_thread(_find_links, checkout.folder, changes.paths)
    names = [one.target.removeprefix(f"{STACK}:") for one in changes.targets]
    repository = await asyncio.to_thread(find_stacks, checkout.folder, may_be_empty=True)
    suspicious = [name for name in names if name in repository.stacks and _leads_out(repository, name)]
    found = {one.target: list(links) for one in changes.targets}
    if suspicious:
        before = await _read_before(checkouts, base, suspicious)
        is_turned = await _may_be_turned(checkouts, checkout.folder, base, changes.paths)
        for name in suspicious:
            reads = read_stack(repository, repository.stacks[name])
            found[f"{STACK}:{name}"] += _compare(reads, before.get(name), is_turned=is_turned)
    return {name: tuple(findings) for name, findings in found.items() if findings}


def _leads_out(repository: StackRepository, name: str) -> bool:
    reads = read_stack(repository, repository.stacks[name])
    return bool(reads.outside or reads.unresolved or _list_hidden(reads))


def _list_hidden(reads: StackReads) -> list[str]:
    """Return what is read of the folders beside the files of the repository: states, keys, objects of git."""
    places = (*reads.paths, *reads.globs, *reads.folders)
    return sorted(place for place in places if set(_NOT_OURS).intersection(place.split("/")))


async def _read_before(checkouts: Checkouts, base: str, names: Iterable[str]) -> Mapping[str, StackReads]:
    """Return what stacks read on the base branch."""
    async with checkouts.at(base) as checkout:
        repository = await asyncio.to_thread(find_stacks, checkout.folder, may_be_empty=True)
        return {
            name: read_stack(repository, repository.stacks[name])
            for name in names
            if name in repository.stacks
        }


def _compare(now: StackReads, before: StackReads | None, *, is_turned: bool) -> Iterator[CodeFinding]:
    outside = set() if before is None else {*before.outside, *_list_hidden(before)}
    for text in (*now.outside, *_list_hidden(now)):
        if text not in outside:
            yield CodeFinding(
                risk=CodeRisk.PATH, path=text[:_LONGEST], line=0, detail="outside of the repository"
            )
    known = set() if before is None else {text for _, text in before.unresolved}
    for where, text in now.unresolved:
        if text not in known or is_turned:
            path, _, line = where.rpartition(":")
            yield CodeFinding(
                risk=CodeRisk.PATH,
                path=path or where,
                line=int(line) if line.isdecimal() else 0,
                detail=f"a path that is known only when it runs: {text[:_LONGEST]}",
            )


async def _may_be_turned(checkouts: Checkouts, top: Path, base: str, paths: tuple[str, ...]) -> bool:
    """Return whether new values could turn a path that is computed out of the repository."""
    git = Comparison(top=checkouts.mirror)
    for path in paths:
        name = path.rpartition("/")[2]
        if is_code(name) or not (is_values(name) or name.endswith(_DATA)):
            continue
        before = set((await git.read_file(base, path) or b"").splitlines())
        lines = (await asyncio.to_thread(_read, top / path)).splitlines()
        if any(line not in before and _WAY_OUT.search(line) for line in lines):
            return True
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _find_links(top: Path, paths: tuple[str, ...]) -> list[CodeFinding]:
    """Return the links that are new and lead out of the repository."""
    real_top = os.path.realpath(top)
    found = []
    for path in paths:
        place = top / path
        if not place.is_symlink():
            continue
        real = os.path.realpath(place)
        inside = os.path.relpath(real, real_top)
        if inside.split("/")[0] in ("..", *_NOT_OURS):
            detail = f"a link to {os.readlink(place)[:_LONGEST]}"
            found.append(CodeFinding(risk=CodeRisk.PATH, path=path, line=0, detail=detail))
    return found
