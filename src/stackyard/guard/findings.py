"""What a check says, and what permits it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Kind, Severity
from stackyard.base.errors import StackyardError
from stackyard.guard.addresses import covers, list_shortest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stackyard.base.errors import Location

__all__ = ["UNKNOWN", "Allowances", "Finding", "GuardRefusedError", "Permit"]

UNKNOWN = Kind(
    code="W-GUARD-UNKNOWN",
    summary="Something could not be checked before the plan is applied",
    remedy="Read what Proxmox answered; the apply itself may still work.",
    severity=Severity.WARNING,
)

# So many names are read; more are not, and whole modules and resources are named instead.
_MOST_PERMITS = 20


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Permit:
    """The option, and the name to give it, that lets a finding pass."""

    option: str
    name: str

    def __str__(self) -> str:
        return f"{self.option} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason not to apply a plan.

    Attributes:
        kind: What sort of reason.
        detail: What is wrong, with names.
        permit: What lets it pass.
        subject: Which guest it is about, for a caller that decides by guest.
        address: The address of the resource that it is about, by which a user may name it as well.
        label: The label of the resource that it is about; its address in code that is not rendered; the rule,
            where a rule judges a repository.
        field: The field of the model that it is about.
        where: The place in the user's file.
    """

    kind: Kind
    detail: str
    permit: Permit | None = None
    subject: str = ""
    address: str = ""
    label: str = ""
    field: tuple[str | int, ...] = ()
    where: Location | None = None

    def diagnostic(self) -> Diagnostic:
        """Return it as every finding is shown."""
        return Diagnostic(kind=self.kind, detail=self.detail, where=self.where)

    def locate(self, locate: Callable[[str, tuple[str | int, ...]], Location | None]) -> Finding:
        """Return the same with its place in the user's file, where that is known."""
        if self.where is not None or not self.label:
            return self
        return dataclasses.replace(self, where=locate(self.label, self.field))


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowances:
    """What the user has named.

    Attributes:
        permits: What may happen, each to one name or address, or to what is below an address.
        everything: Whether the user asked for the end of all of it, as `destroy` does.
    """

    permits: frozenset[Permit] = field(default_factory=frozenset)
    everything: bool = False

    def allow(self, finding: Finding) -> bool:
        """Return whether a finding may pass."""
        if finding.kind.severity is Severity.WARNING:
            return True
        wanted = finding.permit
        if wanted is None:
            return False
        given = (permit.name for permit in self.permits if permit.option == wanted.option)
        return any(name == wanted.name or covers(name, finding.address) for name in given)


class GuardRefusedError(StackyardError):
    """A plan would destroy, stop or collide with something that no one named; nothing was changed."""

    code = "E-GUARD-REFUSED"
    summary = "The plan is refused"
    default_remedy = "Read the findings; correct the input, or name what may happen and repeat."

    def __init__(
        self,
        detail: str,
        findings: tuple[Finding, ...],
        *,
        remedy: str | None = None,
        kept: Collection[str] = (),
    ) -> None:
        super().__init__(detail, remedy=remedy)
        self.findings = findings
        self._kept = frozenset(kept)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding."""
        return tuple(finding.diagnostic() for finding in self.findings)

    @property
    def permits(self) -> tuple[Permit, ...]:
        """What would have to be named for the findings that can be permitted.

        Where that is more than somebody reads, whole resources and modules are named, as far as all of them
        is refused.
        """
        named = {finding.permit: finding.address for finding in self.findings if finding.permit is not None}
        if len(named) > _MOST_PERMITS:
            return tuple(sorted({self._widen(permit, address) for permit, address in named.items()}))
        return tuple(sorted(named))

    def _widen(self, permit: Permit, address: str) -> Permit:
        (widest,) = list_shortest((address,), self._kept)
        return permit if widest == address else dataclasses.replace(permit, name=widest)
