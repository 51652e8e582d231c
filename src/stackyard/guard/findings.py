"""What a check says, and what permits it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Kind, Severity
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.base.errors import Location

__all__ = ["Allowances", "Finding", "GuardRefusedError", "Permit"]


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
        label: The label of the resource that it is about.
        field: The field of the model that it is about.
        where: The place in the user's file.
    """

    kind: Kind
    detail: str
    permit: Permit | None = None
    subject: str = ""
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
        permits: What may happen, each to one name.
        everything: Whether the user asked for the end of all of it, as `destroy` does.
    """

    permits: frozenset[Permit] = field(default_factory=frozenset)
    everything: bool = False

    def allow(self, finding: Finding) -> bool:
        """Return whether a finding may pass."""
        is_warning = finding.kind.severity is Severity.WARNING
        return is_warning or (finding.permit is not None and finding.permit in self.permits)


class GuardRefusedError(StackyardError):
    """A plan would destroy, stop or collide with something that no one named; nothing was changed."""

    code = "E-GUARD-REFUSED"
    summary = "The plan is refused"
    default_remedy = "Read the findings; correct the input, or name what may happen and repeat."

    def __init__(self, detail: str, findings: tuple[Finding, ...], *, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding."""
        return tuple(finding.diagnostic() for finding in self.findings)

    @property
    def permits(self) -> tuple[Permit, ...]:
        """What would have to be named for the findings that can be permitted."""
        return tuple(sorted({finding.permit for finding in self.findings if finding.permit is not None}))
