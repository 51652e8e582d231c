"""What a preflight says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Severity
from stackyard.base.errors import ExitStatus, StackyardError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "CheckResult",
    "Observation",
    "PreflightError",
    "PreflightReport",
    "PreflightUnreachableError",
    "Status",
    "format_list",
]

_NAMED = 3
_REMEDY = (
    "Correct every place listed and run the command again; nothing was changed. "
    "`--skip-preflight` begins without looking."
)


class Status(enum.StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


class PreflightError(StackyardError):
    """Something on the host, in the site or on this machine would make the run fail; nothing was changed."""

    code = "E-PREFLIGHT"
    summary = "The host is not ready"
    default_remedy = _REMEDY

    def __init__(self, detail: str, findings: tuple[Diagnostic, ...]) -> None:
        super().__init__(detail)
        self.findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding."""
        return self.findings


class PreflightUnreachableError(UnreachableError):
    """The API of the host does not answer, or is not the one that is trusted; nothing was changed."""

    code = "E-PREFLIGHT-NO-ANSWER"
    summary = "The host cannot be reached"
    default_remedy = _REMEDY

    def __init__(self, detail: str, findings: tuple[Diagnostic, ...]) -> None:
        super().__init__(detail)
        self.findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding."""
        return self.findings


def format_list(words: Sequence[str]) -> str:
    """Return the first of many words, and how many more there are."""
    shown = ", ".join(words[:_NAMED])
    more = len(words) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a check saw, in a few words, and what is wrong with it."""

    text: str
    findings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How one check ended.

    Attributes:
        name: What it is called.
        status: How it ended.
        text: What was seen, in a few words.
        findings: What is wrong.
        took_s: How long it took.
    """

    name: str
    status: Status
    text: str
    findings: tuple[Diagnostic, ...] = ()
    took_s: float = 0.0

    @classmethod
    def of(cls, name: str, seen: Observation, *, took_s: float) -> CheckResult:
        """Return what a check saw, with the status that its findings give it."""
        severities = {finding.kind.severity for finding in seen.findings}
        status = Status.OK
        if severities:
            status = Status.FAIL if Severity.ERROR in severities else Status.WARN
        return cls(name=name, status=status, text=seen.text, findings=seen.findings, took_s=took_s)

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "name": self.name,
            "status": self.status.value,
            "text": self.text,
            "duration": round(self.took_s, 3),
            "findings": [finding.document() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightReport:
    """Everything that was looked at.

    Attributes:
        host: Which host.
        target: What it is to carry; empty where only the host itself was looked at.
        is_reached: Whether its API answered us; True too where it has none.
        checks: How each check ended.
    """

    host: str
    target: str
    is_reached: bool
    checks: tuple[CheckResult, ...]

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """What is wrong, errors first."""
        found = [finding for check in self.checks for finding in check.findings]
        return tuple(sorted(found, key=lambda finding: finding.kind.severity is not Severity.ERROR))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What is in the way."""
        return tuple(f for f in self.findings if f.kind.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What does not, and should be known."""
        return tuple(f for f in self.findings if f.kind.severity is Severity.WARNING)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is in the way."""
        return not self.errors

    @property
    def exit_status(self) -> ExitStatus:
        """What a shell gets."""
        if self.is_ready:
            return ExitStatus.DONE
        return ExitStatus.FAILED if self.is_reached else ExitStatus.UNREACHABLE

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        return f"{self.host} is {'ready' if self.is_ready else 'not ready'}{''.join(self._counts())}."

    def _counts(self) -> Iterator[str]:
        for count, word in ((len(self.errors), "problem"), (len(self.warnings), "warning")):
            if count:
                yield f", {count} {word}{'' if count == 1 else 's'}"

    def raise_errors(self) -> None:
        """Raise when something is in the way.

        Raises:
            PreflightUnreachableError: The API did not answer.
            PreflightError: Anything else.
        """
        if self.is_ready:
            return
        error = PreflightError if self.is_reached else PreflightUnreachableError
        raise error(f"{self.summary} Nothing was changed.", self.findings)

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "host": self.host,
            "target": self.target or None,
            "ready": self.is_ready,
            "checks": [check.document() for check in self.checks],
            "errors": [finding.document() for finding in self.errors],
            "warnings": [finding.document() for finding in self.warnings],
        }
