"""All checks of one plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Severity
from stackyard.guard.checks import PLACEMENT, TABLE, find_refusals
from stackyard.guard.destruction import find_destruction, find_disk_loss, find_foreign_state
from stackyard.guard.facts import Facts
from stackyard.guard.findings import Allowances, Finding, GuardRefusedError
from stackyard.guard.implied import derive_implied_calls
from stackyard.guard.interruption import find_network_reloads, find_reboots
from stackyard.guard.moves import find_migrations
from stackyard.guard.own_code import find_emptied_state, find_forgotten, find_own_destruction, name_exactly
from stackyard.guard.ownership import Adoption, Owners, adoptions, find_collisions, find_shared_guests
from stackyard.guard.renames import Rename, find_renames, renames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stackyard.base.errors import Location
    from stackyard.desired import Desired
    from stackyard.engine.changes import Changes
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["Verdict", "inspect", "inspect_facts", "inspect_placement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checks say of a plan.

    Attributes:
        refused: Reasons not to apply it.
        permitted: What would be refused, had the user not named it.
        warnings: What the user should know.
        renames: Guests that could be moved in the state instead.
        adoptions: What is there already and could be taken over instead.
        kept: The addresses of what the plan neither destroys nor replaces.
    """

    refused: tuple[Finding, ...]
    permitted: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    renames: tuple[Rename, ...] = ()
    adoptions: tuple[Adoption, ...] = ()
    kept: frozenset[str] = frozenset()

    @classmethod
    def sort(cls, findings: Iterable[Finding], allowances: Allowances) -> Verdict:
        """Return what findings mean, given what the user has named."""
        listed = list(findings)
        others = [one for one in listed if one.kind.severity is not Severity.WARNING]
        return cls(
            refused=tuple(one for one in others if not allowances.allow(one)),
            permitted=tuple(one for one in others if allowances.allow(one)),
            warnings=tuple(one for one in listed if one.kind.severity is Severity.WARNING),
        )

    def join(self, other: Verdict) -> Verdict:
        """Return what both say."""
        return Verdict(
            refused=(*self.refused, *other.refused),
            permitted=(*self.permitted, *other.permitted),
            warnings=(*self.warnings, *other.warnings),
            renames=(*self.renames, *other.renames),
            adoptions=(*self.adoptions, *other.adoptions),
            kept=self.kept | other.kept,
        )

    def permit_all(self, option: str) -> Verdict:
        """Return the same with everything permitted that an option could permit by name."""
        named = [one for one in self.refused if one.permit is not None and one.permit.option == option]
        return dataclasses.replace(
            self,
            refused=tuple(one for one in self.refused if one not in named),
            permitted=(*self.permitted, *named),
        )

    def locate(self, locate: Callable[[str, tuple[str | int, ...]], Location | None]) -> Verdict:
        """Return the same with the places of its findings in the user's files."""
        return dataclasses.replace(
            self,
            refused=tuple(one.locate(locate) for one in self.refused),
            permitted=tuple(one.locate(locate) for one in self.permitted),
            warnings=tuple(one.locate(locate) for one in self.warnings),
        )

    def raise_refusal(self, what: str) -> None:
        """Raise when there is a reason not to apply.

        Args:
            what: The target, as the start of a sentence.

        Raises:
            GuardRefusedError: With every reason.
        """
        if self.refused:
            reasons = "1 reason" if len(self.refused) == 1 else f"{len(self.refused)} reasons"
            raise GuardRefusedError(
                f"{what} is not applied, for {reasons}; nothing was changed.", self.refused, kept=self.kept
            )


def inspect(
    changes: Changes,
    allowances: Allowances,
    cluster: Cluster | None = None,
    owners: Owners | None = None,
    *,
    is_rendered: bool = False,
    protected: bool = False,
) -> Verdict:
    """Run every check of a plan.

    Args:
        changes: What the plan does.
        allowances: What the user has named.
        cluster: What is on the cluster, where that is known.
        owners: What other states manage there.
        is_rendered: Whether stackyard wrote the code. Then some of what goes is of no use by itself, and
            renames can be accepted. In code that a user wrote, each resource counts.
        protected: Whether nothing may be destroyed or replaced, whatever the user names.
    """
    owners = owners or Owners()
    moved = renames(changes) if is_rendered else ()
    shared = dict(find_shared_guests(changes, owners))
    findings = [*(find_renames(changes) if is_rendered else ())]
    findings += [*find_disk_loss(changes), *find_reboots(changes), *shared.values()]
    if is_rendered:
        findings += _find_rendered_loss(changes, moved, shared, is_all=allowances.everything)
    else:
        findings += find_own_destruction(changes, () if protected else shared, protected=protected)
        findings += () if allowances.everything else find_emptied_state(changes)
        findings += find_forgotten(changes)
    findings += [*find_network_reloads(changes, are_notes_harmless=is_rendered), *find_migrations(changes)]
    if cluster is not None:
        findings += find_collisions(changes, cluster, owners)
    found = Verdict.sort(findings if is_rendered else name_exactly(findings, changes), allowances)
    return dataclasses.replace(
        found,
        renames=moved,
        adoptions=adoptions(changes, cluster, owners) if is_rendered and cluster is not None else (),
        kept=frozenset(one.address for one in changes.planned if one.before is not None and not one.destroys),
    )


def _find_rendered_loss(
    changes: Changes, moved: tuple[Rename, ...], shared: Mapping[str, Finding], *, is_all: bool
) -> Iterator[Finding]:
    # A guest that is only renamed is not destroyed once the rename is accepted: one finding is enough.
    spared = {source for rename in moved for source, _ in rename.moves}
    yield from find_destruction(changes, {*spared, *shared}, is_all=is_all)
    if not is_all:
        yield from find_foreign_state(changes, spared)


def inspect_placement(desired: Desired, changes: Changes, cluster: Cluster) -> Verdict:
    """Check that what a model needs is there, by the list of the cluster alone."""
    rows = [row for row in TABLE if row.name in PLACEMENT]
    found = find_refusals(derive_implied_calls(desired, changes), Facts(cluster=cluster), rows)
    return Verdict.sort(found, Allowances())


def inspect_facts(implied: ImpliedCalls, facts: Facts, allowances: Allowances | None = None) -> Verdict:
    """Check that Proxmox will do what a plan asks of it, and that the cluster stays in order."""
    return Verdict.sort(find_refusals(implied, facts), allowances or Allowances())
