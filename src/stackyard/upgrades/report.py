"""Which versions the providers and modules of stacks have, and which newer ones there are."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard import bpg_schema
from stackyard.sources.stacks.kinds import LOCK_FILE
from stackyard.sources.stacks.lock_file import read_lock
from stackyard.upgrades.addresses import ModuleAddress, ProviderAddress
from stackyard.upgrades.declarations import DeclarationKind
from stackyard.upgrades.fetch import SourceError
from stackyard.upgrades.requirements import list_requirements
from stackyard.upgrades.versions import Newer, find_newer, newest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.engine.version import Version
    from stackyard.sources.stacks.lock_file import LockEntry
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.upgrades.requirements import Requirement
    from stackyard.upgrades.sources import Offer, Sources

__all__ = ["UpgradeRow", "build_report", "read_stack_lock"]

_PROXMOX = "bpg/proxmox"
_BUILT_IN = "builtin"
_NOTHING = Newer()


class _NotLookedUpError(SourceError):
    """A module comes from a place that has no list of versions: a git repository, an archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRow:
    """One provider or module of one stack.

    Attributes:
        stack: The name of the stack.
        requirement: What it requires.
        locked: The version in the lock file; None for a module, or where there is none.
        current: The version that others are compared with: the locked one, else the one that the constraint
            starts from.
        offer: The versions that there are; None where they are not known.
        newer: What is newer than the current version.
        allowed: The newest version that all constraints allow.
        built_in: The version that the provider of stackyard serves, where it serves this one.
        problem: Why something is not known; empty where all is.
        is_looked_up: Whether its kind of source is one whose versions are looked up.
    """

    stack: str
    requirement: Requirement
    locked: Version | None = None
    current: Version | None = None
    offer: Offer | None = None
    newer: Newer = _NOTHING
    allowed: Version | None = None
    built_in: str | None = None
    problem: str = ""
    is_looked_up: bool = True

    @property
    def is_unknown(self) -> bool:
        """Whether its versions were asked for, and are not known."""
        return self.offer is None and self.built_in is None and self.is_looked_up

    @property
    def newest(self) -> Version | None:
        """The newest release."""
        return None if self.offer is None else newest(self.offer.versions)


async def build_report(
    repository: StackRepository,
    stacks: Iterable[Stack],
    sources: Mapping[str, Sources],
    only: frozenset[str] = frozenset(),
) -> tuple[UpgradeRow, ...]:
    """Return every provider and module of some stacks.

    Args:
        repository: The repository.
        stacks: The stacks.
        sources: By the name of a stack, who knows the versions.
        only: Names of providers and modules, or of their types; all when empty.
    """
    pending = []
    for stack in stacks:
        known = sources[stack.name]
        locked = read_stack_lock(stack)
        for one in list_requirements(repository, stack, known.flavour):
            if not only or _is_named(one, only):
                pending.append(_row(stack, one, locked, known))
    return tuple(await asyncio.gather(*pending))


def read_stack_lock(stack: Stack) -> dict[str, LockEntry]:
    """Return what the lock file of a stack says, by address."""
    try:
        return read_lock((stack.folder / LOCK_FILE).read_bytes())
    except OSError:
        return {}


def _is_named(one: Requirement, only: frozenset[str]) -> bool:
    address = one.address
    short = address.name if isinstance(address, ModuleAddress) else one.name.rpartition("/")[2]
    return not only.isdisjoint({one.name, str(address), short})


async def _row(
    stack: Stack, one: Requirement, locked: Mapping[str, LockEntry], sources: Sources
) -> UpgradeRow:
    if _is_built_in(stack, one):
        return UpgradeRow(stack=stack.name, requirement=one, built_in=_built_in_version())
    entry = locked.get(str(one.address)) if one.kind is DeclarationKind.PROVIDER else None
    found = None if entry is None else entry.version
    current = _current(one, found)
    problem = next((place.problem for place in one.places if place.problem), "")
    try:
        offer = await _ask(one, sources)
    except SourceError as err:
        return UpgradeRow(
            stack=stack.name,
            requirement=one,
            locked=found,
            current=current,
            problem="; ".join(filter(None, (problem, str(err)))),
            is_looked_up=not isinstance(err, _NotLookedUpError),
        )
    allowed = [v for v in offer.versions if all(c.allows(v) for c in one.constraints)]
    # Without a constraint, the engine takes the newest release.
    best = max((v for v in allowed if one.constraints or not v.prerelease), default=None)
    return UpgradeRow(
        stack=stack.name,
        requirement=one,
        locked=found,
        current=current,
        offer=offer,
        newer=_NOTHING if current is None else find_newer(current, offer.versions),
        allowed=None if problem else best,
        problem=problem,
    )


def _current(one: Requirement, locked: Version | None) -> Version | None:
    """Return the version that others are compared with."""
    if locked is not None and all(constraint.allows(locked) for constraint in one.constraints):
        return locked
    # Without a lock file, or with one that the code has left behind, the code says where it is.
    bases = [constraint.base for constraint in one.constraints if constraint.base is not None]
    return max(bases, default=locked)


@functools.cache
def _built_in_version() -> str:
    return str(bpg_schema.load_provider()["provider_version"])


async def _ask(one: Requirement, sources: Sources) -> Offer:
    if isinstance(one.address, ProviderAddress):
        return await sources.provider(one.address)
    if isinstance(one.address, ModuleAddress):
        return await sources.module(one.address)
    source = one.places[0].declaration.source
    if source is None:
        raise _NotLookedUpError("only OpenTofu can compute where the module comes from")
    if source.startswith("oci://"):
        return await sources.oci_module(source)
    raise _NotLookedUpError("versions are looked up in registries, not for such a source")


def _is_built_in(stack: Stack, one: Requirement) -> bool:
    return (
        one.kind is DeclarationKind.PROVIDER
        and one.name == _PROXMOX
        and (stack.settings.provider or _BUILT_IN) == _BUILT_IN
    )
