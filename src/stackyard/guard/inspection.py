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
from stackyard.guard.ownership import Adoption, Owners, adoptions, find_collisions, find_shared_guests
from stackyard.guard.renames import Rename, find_renames, renames

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """

    refused: tuple[Finding, ...]
    permitted: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    renames: tuple[Rename, ...] = ()
    adoptions: tuple[Adoption, ...] = ()

    def join(self, other: Verdict) -> Verdict:
        """Return what both say."""
        return Verdict(
            refused=(*self.refused, *other.refused),
            permitted=(*self.permitted, *other.permitted),
            warnings=(*self.warnings, *other.warnings),
            renames=(*self.renames, *other.renames),
            adoptions=(*self.adoptions, *other.adoptions),
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
                f"{what} is not applied, for {reasons}; nothing was changed.", self.refused
            )


def inspect(
    changes: Changes, allowances: Allowances, cluster: Cluster | None = None, owners: Owners | None = None
) -> Verdict:
    """Run every check of a plan.

    Args:
        changes: What the plan does.
        allowances: What the user has named.
        cluster: What is on the cluster, where that is known.
        owners: What other states manage there.
    """
    owners = owners or Owners()
    moved = renames(changes)
    spared = {source for rename in moved for source, _ in rename.moves}
    findings = [*find_renames(changes), *find_disk_loss(changes), *find_reboots(changes)]
    # A guest that is only renamed is not destroyed once the rename is accepted: one finding is enough.
    shared = dict(find_shared_guests(changes, owners))
    findings += shared.values()
    findings += find_destruction(changes, {*spared, *shared}, is_all=allowances.everything)
    if not allowances.everything:
        findings += find_foreign_state(changes, spared)
    findings += find_network_reloads(changes)
    findings += find_migrations(changes)
    if cluster is not None:
        findings += find_collisions(changes, cluster, owners)
    taken = () if cluster is None else adoptions(changes, cluster, owners)
    return dataclasses.replace(_verdict(findings, allowances), renames=moved, adoptions=taken)


def inspect_placement(desired: Desired, changes: Changes, cluster: Cluster) -> Verdict:
    """Check that what a model needs is there, by the list of the cluster alone."""
    rows = [row for row in TABLE if row.name in PLACEMENT]
    found = find_refusals(derive_implied_calls(desired, changes), Facts(cluster=cluster), rows)
    return _verdict(list(found), Allowances())


def inspect_facts(implied: ImpliedCalls, facts: Facts) -> Verdict:
    """Check that Proxmox will do what a plan asks of it."""
    return _verdict(list(find_refusals(implied, facts)), Allowances())


def _verdict(findings: list[Finding], allowances: Allowances) -> Verdict:
    warnings = tuple(f for f in findings if f.kind.severity is Severity.WARNING)
    others = [f for f in findings if f.kind.severity is not Severity.WARNING]
    return Verdict(
        refused=tuple(f for f in others if not allowances.allow(f)),
        permitted=tuple(f for f in others if allowances.allow(f)),
        warnings=warnings,
    )
