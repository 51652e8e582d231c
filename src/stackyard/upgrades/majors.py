"""Which stacks may take a new major version: first those that are not critical, then the others.

The others wait until a stack with `critical: false` was applied with it. What proves that is the commit that
the store has of its last apply: the lock file, or the version of the module, at that commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.documents.constraints import ConstraintError, parse_constraint
from stackyard.base.documents.versions import major_line
from stackyard.clients.git.compare import Comparison
from stackyard.clients.git.run import GitError
from stackyard.sources.stacks.kinds import LOCK_FILE, is_code
from stackyard.sources.stacks.lock_file import read_lock
from stackyard.sources.stacks.reads import read_stack
from stackyard.upgrades.addresses import DEFAULT_HOSTS, parse_module
from stackyard.upgrades.declarations import DeclarationKind, read_declarations
from stackyard.upgrades.requirements import list_requirements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.version import Flavour, Version
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["MajorGate", "open_gate"]

Key = tuple[str, str]
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorGate:
    """Says whether a stack may take a new major version.

    Attributes:
        critical: The names of the critical stacks.
        users: By provider or module, the stacks with `critical: false` that use it.
        proven: By provider or module, what each of these was applied with.
    """

    critical: frozenset[str]
    users: Mapping[Key, tuple[str, ...]]
    proven: Mapping[Key, Mapping[str, frozenset[tuple[int, ...]]]] = field(default_factory=dict)

    def refusal(self, stack: str, key: Key, target: Version) -> str:
        """Return why a critical stack may not take a version yet; empty where it may."""
        if stack not in self.critical:
            return ""
        line = major_line(target)
        if any(line in lines for lines in self.proven.get(key, {}).values()):
            return ""
        users = self.users.get(key, ())
        if not users:
            return "it is critical, and no stack with `critical: false` uses this to try the version first"
        listed = " or ".join(f"stack:{one}" for one in users[:_MOST_NAMED])
        return f"it is critical, and waits until {listed} was applied with {_words(line)}"


def _words(line: tuple[int, ...]) -> str:
    return ".".join(map(str, line)) + ".x"


async def open_gate(
    repository: StackRepository, applied: Mapping[str, str], flavours: Mapping[str, Flavour]
) -> MajorGate:
    """Return what decides about new major versions.

    Args:
        repository: The stacks.
        applied: By name, the commit of each stack that was applied last.
        flavours: By name, the engine of each stack.
    """
    users: dict[Key, list[str]] = {}
    proven: dict[Key, dict[str, frozenset[tuple[int, ...]]]] = {}
    tried = [one for one in repository.stacks.values() if not one.settings.critical]
    for stack in tried:
        flavour = flavours[stack.name]
        for key in {one.key for one in list_requirements(repository, stack, flavour)}:
            users.setdefault(key, []).append(stack.name)
        if stack.name in applied:
            found = await _applied_lines(repository, stack, applied[stack.name], flavour)
            for key, lines in found.items():
                proven.setdefault(key, {})[stack.name] = frozenset(lines)
    return MajorGate(
        critical=frozenset(one.name for one in repository.stacks.values() if one.settings.critical),
        users={key: tuple(sorted(names)) for key, names in users.items()},
        proven=proven,
    )


async def _applied_lines(
    repository: StackRepository, stack: Stack, commit: str, flavour: Flavour
) -> dict[Key, set[tuple[int, ...]]]:
    """Return the major versions that a stack had at a commit; none where it is not in this repository."""
    git = Comparison(top=Path(repository.tree.top))
    found: dict[Key, set[tuple[int, ...]]] = {}
    lock = await git.read_file(commit, f"{repository.prefix}{stack.path}/{LOCK_FILE}")
    for address, entry in read_lock(lock or b"").items():
        found.setdefault((DeclarationKind.PROVIDER.value, address), set()).add(major_line(entry.version))
    try:
        files = await git.list_files(commit)
    except GitError:
        return found
    folders = set(read_stack(repository, stack).folders)
    for path in files:
        folder, _, name = path.rpartition("/")
        if folder in folders and is_code(name):
            for key, version in _modules(await git.read_file(commit, path) or b"", name, flavour):
                found.setdefault(key, set()).add(major_line(version))
    return found


def _modules(data: bytes, name: str, flavour: Flavour) -> Iterator[tuple[Key, Version]]:
    for one in read_declarations(data, is_json=name.endswith(".json")):
        if one.kind is not DeclarationKind.MODULE or not one.source or one.constraint is None:
            continue
        address = parse_module(one.source, DEFAULT_HOSTS[flavour])
        try:
            base = parse_constraint(one.constraint).base
        except ConstraintError:
            continue
        if base is not None:
            yield (one.kind.value, str(address or one.source.partition("?")[0])), base
