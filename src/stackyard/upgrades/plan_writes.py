"""Which files an upgrade changes, decided before any of them is: one version for all who share a constraint.

A constraint in a local module holds for every stack that calls the module. It is raised once, to a version
that all of them can take, and only if all of them are selected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.byte_edits import Edit
from stackyard.base.documents.versions import is_major_step
from stackyard.sources.stacks.reads import read_stack
from stackyard.upgrades.declarations import DeclarationKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from stackyard.engine.version import Version
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.upgrades.majors import MajorGate
    from stackyard.upgrades.report import UpgradeRow
    from stackyard.upgrades.requirements import Place

__all__ = ["Held", "Upgrade", "WritePlan", "WriteUnit", "name_stacks", "plan_writes"]

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A provider or module of a stack that gets another version.

    Attributes:
        row: What is known of it.
        target: The version.
    """

    row: UpgradeRow
    target: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A newer version that is not written.

    Attributes:
        row: What it is a version of.
        version: The version.
        reason: Why.
        is_major: Whether it is a major step.
    """

    row: UpgradeRow
    version: Version
    reason: str
    is_major: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteUnit:
    """Stacks that are changed together, or not: they share a file that is edited.

    Attributes:
        stacks: Their names, sorted.
        upgrades: What they get.
        edits: By file, what is replaced.
    """

    stacks: tuple[str, ...]
    upgrades: tuple[Upgrade, ...]
    edits: dict[Path, tuple[Edit, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What an upgrade writes, and what it does not."""

    units: tuple[WriteUnit, ...]
    held: tuple[Held, ...]


def name_stacks(names: Iterable[str]) -> str:
    """Return the names of stacks for a sentence; of many, the first ones."""
    ordered = sorted(names)
    shown = ", ".join(f"stack:{one}" for one in ordered[:_MOST_NAMED])
    return shown if len(ordered) <= _MOST_NAMED else f"{shown} and {len(ordered) - _MOST_NAMED} more"


def plan_writes(
    repository: StackRepository, rows: Sequence[UpgradeRow], gate: MajorGate | None = None
) -> WritePlan:
    """Decide what to write.

    Args:
        repository: All stacks.
        rows: What is known of the selected ones.
        gate: Who may take a new major version; nobody when absent.
    """
    planner = _Planner(repository, rows, gate)
    for group in _group(planner, [one for one in rows if one.offer is not None and one.current is not None]):
        planner.decide(group)
    return WritePlan(units=planner.units(), held=tuple(planner.held))


@dataclass(slots=True)
class _Planner:
    """Decides about one group of rows after the other."""

    repository: StackRepository
    rows: Sequence[UpgradeRow]
    gate: MajorGate | None
    upgrades: list[Upgrade] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    edits: dict[Path, set[Edit]] = field(default_factory=dict)
    callers: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, stack in self.repository.stacks.items():
            for folder in read_stack(self.repository, stack).folders:
                self.callers.setdefault(folder, set()).add(name)

    def decide(self, group: list[UpgradeRow]) -> None:
        """Choose the newest version that every row of a group can take."""
        first: tuple[Version, str] | None = None
        for version in self.candidates(group):
            reason = self.refuse(group, version)
            if not reason:
                self.take(group, version)
                break
            first = first or (version, reason)
        if first is not None:
            version, reason = first
            for row in group:
                if row.current is not None and row.current < version:
                    is_major = is_major_step(row.current, version)
                    self.held.append(Held(row=row, version=version, reason=reason, is_major=is_major))

    def candidates(self, group: list[UpgradeRow]) -> list[Version]:
        found: set[Version] = set()
        for row in group:
            newer = row.newer
            offered = () if row.offer is None else row.offer.versions
            limit = (newer.major if self.gate is not None else None) or newer.compatible or row.current
            found |= {
                one
                for one in offered
                if row.current is not None
                and limit is not None
                and row.current <= one <= limit
                and (not one.prerelease or one in (limit, row.current))
            }
        return sorted(found, reverse=True)

    def refuse(self, group: list[UpgradeRow], version: Version) -> str:
        """Return why a group cannot take a version; empty where it can."""
        for row in group:
            current = row.current
            if current is None or version < current:
                return f"stack:{row.stack} already has {current}, and shares the constraint"
            if is_major_step(current, version):
                if self.gate is None:
                    return f"it is a major step for stack:{row.stack}"
                if reason := self.gate.refusal(row.stack, row.requirement.key, version):
                    return reason if len(group) == 1 else f"stack:{row.stack} shares the constraint: {reason}"
            for place in row.requirement.places:
                if reason := self.refuse_place(place, version):
                    return reason
        return ""

    def refuse_place(self, place: Place, version: Version) -> str:
        constraint = place.constraint
        if constraint is None or (constraint.allows(version) and not self.is_raised(place)):
            return place.problem
        shown = f"{place.where}: `{constraint.text}`"
        if not self.is_raised(place):
            return f"{shown} does not allow it, and only `~>` is raised"
        others = self.callers.get(place.folder, set()) - {row.stack for row in self.rows}
        if others and not constraint.allows(version):
            return f"{shown} also holds for {name_stacks(others)}: select all of them"
        if others:
            return ""
        if place.declaration.span is None:
            return f"{shown} cannot be edited: write it as a plain text"
        return "" if constraint.raise_to(version) is not None else f"{shown} does not allow it"

    def is_raised(self, place: Place) -> bool:
        """Return whether a constraint is one that an upgrade raises."""
        constraint = place.constraint
        is_module = place.declaration.kind is DeclarationKind.MODULE
        return constraint is not None and (constraint.is_pessimistic or (is_module and constraint.is_exact))

    def take(self, group: list[UpgradeRow], version: Version) -> None:
        for row in group:
            is_edited = False
            for place in row.requirement.places:
                is_edited |= self.edit(place, version)
            is_provider = row.requirement.kind is DeclarationKind.PROVIDER
            if is_edited or (is_provider and row.locked != version):
                self.upgrades.append(Upgrade(row=row, target=version))

    def edit(self, place: Place, version: Version) -> bool:
        constraint, span = place.constraint, place.declaration.span
        others = self.callers.get(place.folder, set()) - {row.stack for row in self.rows}
        if constraint is None or span is None or others or not self.is_raised(place):
            return False
        text = constraint.raise_to(version)
        if text is None or text == constraint.text:
            return False
        self.edits.setdefault(place.path, set()).add(Edit(*span, text, constraint.text))
        return True

    def units(self) -> tuple[WriteUnit, ...]:
        """Return the changes, with the stacks together that share an edited file."""
        by_stack: dict[str, list[Upgrade]] = {}
        files: dict[str, set[Path]] = {}
        for one in self.upgrades:
            by_stack.setdefault(one.row.stack, []).append(one)
            paths = {place.path for place in one.row.requirement.places} & self.edits.keys()
            files.setdefault(one.row.stack, set()).update(paths)
        found = []
        for names in _connect(files):
            paths = set().union(*(files[name] for name in names))
            found.append(
                WriteUnit(
                    stacks=tuple(sorted(names)),
                    upgrades=tuple(one for name in sorted(names) for one in by_stack[name]),
                    edits={path: tuple(sorted(self.edits[path])) for path in sorted(paths)},
                )
            )
        return tuple(sorted(found, key=lambda one: one.stacks))


def _group(planner: _Planner, rows: Iterable[UpgradeRow]) -> list[list[UpgradeRow]]:
    """Return rows together that are about the same thing and share a constraint that is raised."""
    numbered = dict(enumerate(rows))
    places = {
        number: {
            (row.requirement.key, place.path, place.declaration.span)
            for place in row.requirement.places
            if planner.is_raised(place)
        }
        for number, row in numbered.items()
    }
    return [[numbered[number] for number in sorted(one)] for one in _connect(places)]


def _connect(sets: dict[Any, set[Any]]) -> list[list[Any]]:
    """Return the keys of sets together that have a member in common, directly or through others."""
    owner: dict[Any, list[Any]] = {}
    groups: dict[Any, list[Any]] = {}
    for key, members in sets.items():
        joined = [key]
        for old in {id(owner[one]): owner[one] for one in members if one in owner}.values():
            joined += old
        for one in joined:
            groups[one] = joined
        for one in {*members, *(inner for other in joined for inner in sets[other])}:
            owner[one] = joined
    return list({id(one): one for one in groups.values()}.values())
