"""Code of a pull request that could do more than plan, which somebody with the right has to allow first.

What the base branch has in the same words is trusted; what is new is found before anything of it is loaded:
a program, a provider or module from a source that the base branch does not have, a setting of the engine, an
address that providers log in at, a path outside of the repository.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.git.compare import Comparison
from stackyard.gitops.code_items import list_items, list_places
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.gitops.path_check import find_paths
from stackyard.gitops.program_check import find_programs
from stackyard.gitops.settings_check import find_settings
from stackyard.gitops.values_check import find_addresses
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.kinds import KIND as STACK
from stackyard.sources.stacks.kinds import is_code
from stackyard.sources.stacks.repository import find_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.code_items import CodeItem
    from stackyard.gitops.model import Checkout
    from stackyard.gitops.targets import TargetChanges

__all__ = ["check_code"]

# What has a meaning in an extended expression.
_SPECIAL = re.compile(r"([.\[\](){}*+?^$|\\])")
_LARGEST_BYTES = 16 * 2**20


@dataclass(slots=True, kw_only=True)
class _Base:
    """The base branch, asked only for what a pull request has newly."""

    git: Comparison
    commit: str
    _files: dict[str, list[str]] = field(default_factory=dict)
    _items: dict[str, frozenset[tuple[CodeRisk, str]]] = field(default_factory=dict)

    async def read(self, path: str) -> bytes:
        return await self.git.read_file(self.commit, path) or b""

    async def has(self, item: CodeItem) -> bool:
        """Return whether some file of code on the base branch has the same."""
        for path in await self.find(_word_of(item)):
            if path not in self._items:
                said = list_items(path, await self.read(path))
                self._items[path] = frozenset((one.risk, one.text) for one in said)
            if (item.risk, item.text) in self._items[path]:
                return True
        return False

    async def find(self, word: str) -> list[str]:
        """Return the files of code with a word in them."""
        if word not in self._files:
            found = await self.git.find_files_with(self.commit, _SPECIAL.sub(r"\\\1", word))
            self._files[word] = [path for path in found if is_code(path.rpartition("/")[2])]
        return self._files[word]


def _word_of(item: CodeItem) -> str:
    """Return a word that every file has which has the same."""
    kind, _, rest = item.text.partition(" ")
    if item.risk is CodeRisk.SOURCE:
        # A provider that no block requires is named by the word before the underscore.
        return rest.removeprefix("hashicorp/")
    return kind


async def check_code(
    checkouts: Checkouts, checkout: Checkout, base: str, changes: TargetChanges
) -> Mapping[str, tuple[CodeFinding, ...]]:
    """Return by target what in the code of a merge could do more than plan, and is not on the base branch.

    Args:
        checkouts: The commits of the repository.
        checkout: The files of the merge.
        base: The commit of the base branch.
        changes: What the pull request changes.

    Raises:
        GitError: git cannot read the base branch.
        InvalidInputError: stackyard.yaml is not valid.
    """
    git = Comparison(top=checkouts.mirror)
    known = _Base(git=git, commit=base)
    findings: list[CodeFinding] = []
    for path, real in await asyncio.to_thread(_list_code, checkout.folder, changes.paths):
        findings += await _check_code(known, checkout.folder, path, real)
    findings += await find_settings(git, base, checkout.folder, changes.paths)
    findings += await find_addresses(git, base, checkout.folder, changes.paths)
    findings += await find_programs(git, base, checkout.folder, changes.paths)
    paths = await find_paths(checkouts, checkout, base, changes)
    readers = await asyncio.to_thread(_list_readers, checkout.folder, changes)
    return {
        one.target: found
        for one in changes.targets
        if (found := _sort((*_of_target(findings, readers, one.target), *paths.get(one.target, ()))))
    }


def _sort(findings: tuple[CodeFinding, ...]) -> tuple[CodeFinding, ...]:
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: (one.path, one.line, one.detail)))


def _of_target(
    findings: list[CodeFinding], readers: Mapping[str, tuple[str, ...]], target: str
) -> Iterator[CodeFinding]:
    """Yield what a target reads; what no stack reads may concern every target."""
    owned = tuple(folder for folders in readers.values() for folder in folders)
    for one in findings:
        folder = os.path.dirname(one.path)
        if (
            not is_code(os.path.basename(one.path))
            or folder not in owned
            or folder in readers.get(target, ())
        ):
            yield one


def _list_readers(top: Path, changes: TargetChanges) -> dict[str, tuple[str, ...]]:
    """Return by stack the folders of its code."""
    repository = find_stacks(top, may_be_empty=True)
    found = {}
    for one in changes.targets:
        stack = repository.stacks.get(one.target.removeprefix(f"{STACK}:"))
        if stack is not None:
            own = f"{repository.prefix}{stack.path}"
            found[one.target] = (own, *read_facts(repository, stack).modules)
    return found


def _list_code(top: Path, paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return the code that differs, and the file that has it: engines follow a link of such a name."""
    found = {path: path for path in paths if is_code(path.rpartition("/")[2])}
    changed = frozenset(paths)
    for here, _, names in os.walk(top):
        for name in names:
            place = os.path.join(here, name)
            if is_code(name) and os.path.islink(place):
                real = os.path.relpath(os.path.realpath(place), os.path.realpath(top))
                path = os.path.relpath(place, top)
                if path in changed or real in changed:
                    found[path] = real
    return sorted(found.items())


def _read(path: Path) -> bytes | None:
    try:
        return None if path.stat().st_size > _LARGEST_BYTES else path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError:
        return None


async def _check_code(base: _Base, top: Path, path: str, real: str) -> list[CodeFinding]:
    if real.startswith("../"):
        # A link that leads out is one for the check of paths; nothing there is read.
        return []
    data = await asyncio.to_thread(_read, top / real)
    if data is None:
        detail = "a file that cannot be read, or is far too large"
        return [CodeFinding(risk=CodeRisk.ENGINE, path=path, line=0, detail=detail)]
    items = await asyncio.to_thread(list_items, path, data)
    moved = [] if path.endswith(".json") else await _find_moved_state(base, top, path, data)
    if not items:
        return moved
    said = await base.read(real)
    before = {(one.risk, one.text) for one in list_items(path, said)} if said else set()
    return moved + [
        CodeFinding(risk=one.risk, path=path, line=one.line, detail=one.detail)
        for one in items
        if one.is_unreadable or ((one.risk, one.text) not in before and not await base.has(one))
    ]


async def _find_moved_state(base: _Base, top: Path, path: str, data: bytes) -> list[CodeFinding]:
    """Return the words by which the backend of a stack that the base branch has means another state.

    A new stack names a state of its own, which no other stack may have.
    """
    folder, places = os.path.dirname(path), list_places(data)
    before: set[str] = set()
    for other in await base.find("backend"):
        if os.path.dirname(other) == folder and not other.endswith(".json"):
            before |= set(list_places(await base.read(other)))
    if not before:
        return []
    found = {place: line for place, line in places.items() if place not in before}
    # A word that is left out has a default, which is another state too.
    names = await asyncio.to_thread(_list_place_names, top / folder)
    lost = set(list_places(await base.read(path))) - set(places)
    found |= {f"without {place}": 1 for place in lost if place.partition("=")[0] not in names}
    return [
        CodeFinding(risk=CodeRisk.ENGINE, path=path, line=line, detail=f"another state: {place}")
        for place, line in found.items()
    ]


def _list_place_names(folder: Path) -> set[str]:
    """Return the words that the backends of a folder have for the place of the state."""
    files = (one for one in folder.glob("*") if is_code(one.name) and one.suffix != ".json")
    return {place.partition("=")[0] for one in files for place in list_places(_read(one) or b"")}
