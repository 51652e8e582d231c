"""What went wrong in the engine, as errors of ours.

The engine reports `Finding`s: structured from the verbs that speak JSON, cut from its text by `read_text`
where a verb has nothing better. `cause` tells the few that a caller treats in a special way from the rest. It
has to match fixed strings of the engine, because its diagnostics carry no codes; they are all in one table,
`_CAUSES`. A string that a later version words differently degrades to a plain `TofuError` that shows it.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Kind, Severity
from stackyard.base.errors import BusyError, Location, StackyardError, UnreachableError
from stackyard.engine.lock_holder import LockHolder, read_holder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "WARNING",
    "BackendLoginError",
    "BackendUnreachableError",
    "Finding",
    "InitNeededError",
    "LockHolder",
    "PlanStaleError",
    "ProviderLockError",
    "RegistryUnreachableError",
    "StateInClearError",
    "StateLockedError",
    "StateNotSavedError",
    "StateNotUnlockedError",
    "StatePassphraseError",
    "TofuError",
    "cause",
    "failure",
    "read_holder",
    "read_text",
]


# The engine's advice under every failure to lock: to do without locks, which costs the state.
_LOCK_ADVICE = re.compile(
    r"\s*(?:OpenTofu|Terraform) acquires a state lock to protect the state from being written.*?"
    r"not\s+recommended\.?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One diagnostic of the engine, secrets masked, without its advice to turn locking off."""

    severity: Severity
    summary: str
    detail: str
    where: Location | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if "-lock=false" in self.detail or "-lock=false" in self.summary:
            object.__setattr__(self, "detail", _LOCK_ADVICE.sub("", self.detail))
            object.__setattr__(self, "summary", _LOCK_ADVICE.sub("", self.summary))

    def diagnostic(self) -> Diagnostic:
        """Return it as a finding of ours: the engine's words, with the code of their cause."""
        summary = self.summary.partition("\n")[0]
        if self.severity is Severity.WARNING:
            kind = dataclasses.replace(WARNING, summary=summary, remedy="")
        else:
            found = cause(self)
            remedy = "" if found is TofuError else found.default_remedy
            kind = Kind(code=found.code, summary=summary, remedy=remedy)
        # A bare Go error arrives as a summary of many lines without a detail.
        detail = self.detail.strip() or self.summary.strip()
        return Diagnostic(
            kind=kind, detail=f"{self.address}: {detail}" if self.address else detail, where=self.where
        )


WARNING = Kind(
    code="W-TOFU",
    summary="OpenTofu or Terraform warns, in its own words",
    remedy="Read what it says; nothing was stopped.",
    severity=Severity.WARNING,
)


class TofuError(StackyardError):
    """OpenTofu or Terraform ran and reported errors; each of them is listed.

    Args:
        detail: Which verb failed where.
        findings: Everything that the engine reported, warnings too.
    """

    code = "E-TOFU-FAILED"
    summary = "OpenTofu reported errors"
    default_remedy = "Correct what it reports and run the command again."

    def __init__(self, detail: str, findings: Iterable[Finding] = ()) -> None:
        self.findings = tuple(findings)
        placed = [finding.where for finding in self.findings if finding.severity is Severity.ERROR]
        super().__init__(detail, where=next(filter(None, placed), None))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that the engine reported."""
        return tuple(finding.diagnostic() for finding in self.findings)


class StateLockedError(TofuError, BusyError):
    """Another run holds the lock of the state, and did not let go of it in time.

    Attributes:
        holder: Who holds it, as far as the engine tells.
    """

    code = "E-STATE-LOCKED"
    summary = "The state is locked"
    default_remedy = (
        "Wait for the other run to end; `stackyard state locks` shows who holds the lock. "
        "If it is certain that it is dead:\n  stackyard state unlock LOCK_ID --reason TEXT\n"
        "or, for a Talos cluster:\n  stackyard infra force-unlock LOCK_ID"
    )

    def __init__(self, detail: str, findings: Iterable[Finding] = ()) -> None:
        findings = tuple(findings)
        holders = (read_holder(finding.detail) for finding in findings if cause(finding) is StateLockedError)
        self.holder = next(filter(None, holders), None)
        super().__init__(detail if self.holder is None else f"{detail} {self.holder}.", findings)
        if self.holder is not None:
            self.remedy = self.default_remedy.replace("LOCK_ID", self.holder.id)


class StateNotUnlockedError(TofuError):
    """The work is done, but the lock of the state could not be released."""

    code = "E-STATE-NOT-UNLOCKED"
    summary = "The state stayed locked"
    default_remedy = (
        "Make sure that no other run is at work, then remove the lock that `stackyard state locks` shows:\n"
        "  stackyard state unlock LOCK_ID --reason TEXT"
    )


class StateNotSavedError(TofuError):
    """The changes were made, but the new state could not be stored; it was kept in a file.

    Args:
        detail: Which verb failed where.
        findings: Everything that the engine reported.
        kept_in: The file that holds the new state, when there is one.
    """

    code = "E-STATE-NOT-SAVED"
    summary = "The new state could not be stored"
    default_remedy = (
        "Do not apply again before the kept state is stored: make the backend work and push errored.tfstate."
    )

    def __init__(self, detail: str, findings: Iterable[Finding] = (), *, kept_in: Path | None = None) -> None:
        super().__init__(detail if kept_in is None else f"{detail} It is kept in {kept_in}.", findings)
        self.kept_in = kept_in


class ProviderLockError(TofuError):
    """The dependency lock file (.terraform.lock.hcl) does not fit the providers that are asked for."""

    code = "E-PROVIDER-LOCK"
    summary = "The provider lock file does not fit the configuration"
    default_remedy = "If you intend to change providers, refresh the lock file:\n  tofu init -upgrade"


class PlanStaleError(TofuError):
    """The state or the configuration has changed since the plan was made; nothing was applied."""

    code = "E-PLAN-STALE"
    summary = "The saved plan is out of date"
    default_remedy = "Plan again, look at the new plan, and apply that one."


class InitNeededError(TofuError):
    """The folder was not initialised, or not since its backend or providers changed."""

    code = "E-INIT-NEEDED"
    summary = "The folder is not initialised"
    default_remedy = "Initialise it first:\n  tofu init"


class BackendUnreachableError(TofuError, UnreachableError):
    """The place where the state is kept does not answer."""

    code = "E-BACKEND-UNREACHABLE"
    summary = "The state cannot be reached"
    default_remedy = "Check the address of the state backend and the network, then run the command again."


class BackendLoginError(TofuError):
    """The place where the state is kept refuses the user name or the password."""

    code = "E-BACKEND-LOGIN"
    summary = "The state backend refuses the credentials"
    default_remedy = (
        "Correct TF_HTTP_USERNAME and TF_HTTP_PASSWORD. Those of a cluster are tfstate_username and "
        "tfstate_password in infrastructure/secrets.sops.yaml: correct them in the input of the cluster and "
        "run `stackyard cluster configure`, or use `stackyard infra secrets-edit`."
    )


class StateInClearError(TofuError):
    """The state is in clear, and the configuration says that it is encrypted."""

    code = "E-STATE-IN-CLEAR"
    summary = "The state is not encrypted yet"
    default_remedy = (
        "For a Talos cluster, set `state_encryption_passphrase_previous: none` beside the passphrase, run "
        "`stackyard cluster configure` and apply once; then remove it. In other code, give `encryption` a "
        "fallback with the method `unencrypted`."
    )


class StatePassphraseError(TofuError):
    """The state is encrypted with a key that the configuration does not have."""

    code = "E-STATE-PASSPHRASE"
    summary = "The state cannot be decrypted"
    default_remedy = (
        "For a Talos cluster, correct `state_encryption_passphrase`. After a change of it, the former one "
        "belongs in `state_encryption_passphrase_previous` for one apply. Then run `stackyard cluster "
        "configure`. In other code, correct the keys of `encryption`."
    )


class RegistryUnreachableError(TofuError, UnreachableError):
    """The registry that a provider or module should come from does not answer."""

    code = "E-REGISTRY-UNREACHABLE"
    summary = "The provider registry cannot be reached"
    default_remedy = "Check the network and the proxy settings, then run the command again."


@dataclass(frozen=True, slots=True)
class _Cause:
    """Strings that tell a cause: the start of a summary, and what must be in the text, any one of them."""

    error: type[TofuError]
    summary: str
    within: tuple[str, ...] = ()

    def fits(self, finding: Finding) -> bool:
        if not finding.summary.lower().startswith(self.summary):
            return False
        # The engine breaks lines where the terminal ends.
        text = " ".join(f"{finding.summary} {finding.detail}".split())
        return not self.within or any(part in text for part in self.within)


_HELD = ("Lock Info:", "already locked")
_OFFLINE = (
    "dial tcp",
    "connection refused",
    "connection reset",
    "no such host",
    "i/o timeout",
    "giving up after",
    "exceeded maximum number of attempts",
    "Client.Timeout exceeded",
)
# The `http` backend, for the statuses 401 and 403.
_LOGIN = ("requires auth", "invalid auth")
# Only OpenTofu encrypts. Where it reads a state, each verb begins its report in another way.
_READS = (
    "error acquiring the state lock",
    "error refreshing",
    "error loading state",
    "failed to load",
    "encountered unencrypted",
    "decryption failed",
    "unsupported state file format",
)
_IN_CLEAR = ("encountered unencrypted payload without unencrypted method",)
_SEALED = (
    "decryption failed for all provided methods",
    "can not be read without an encryption configuration",
)
_APPLIES_SAVED_PLAN = ("A saved plan can be applied only",)
_MISFIT = ("does not match configured version constraint", "dependency lock file")

# Seen in OpenTofu 1.10.0 and 1.12.6 and in Terraform 1.11.4, unless said otherwise. The most important cause
# comes first: it is the one that names the error when a run reports several.
_CAUSES = (
    _Cause(StateNotSavedError, "failed to persist state to backend"),
    _Cause(StateNotSavedError, "failed to save state"),
    _Cause(StateLockedError, "error acquiring the state lock", _HELD),
    _Cause(StateNotUnlockedError, "error releasing the state lock"),
    *(_Cause(StateInClearError, start, _IN_CLEAR) for start in _READS),
    *(_Cause(StatePassphraseError, start, _SEALED) for start in _READS),
    _Cause(PlanStaleError, "saved plan is stale"),
    _Cause(PlanStaleError, "saved plan does not match the given state"),
    _Cause(PlanStaleError, "inconsistent dependency lock file", _APPLIES_SAVED_PLAN),
    _Cause(ProviderLockError, "inconsistent dependency lock file"),
    _Cause(ProviderLockError, "failed to read dependency lock file"),
    _Cause(ProviderLockError, "provider dependency changes detected"),
    _Cause(ProviderLockError, "failed to query available provider packages", _MISFIT),  # Terraform
    _Cause(ProviderLockError, "failed to resolve provider packages", _MISFIT),  # OpenTofu
    _Cause(ProviderLockError, "failed to install provider", _MISFIT),
    _Cause(InitNeededError, "backend initialization required"),
    _Cause(InitNeededError, "required plugins are not installed"),
    _Cause(InitNeededError, "missing or corrupted provider plugins"),
    _Cause(InitNeededError, "module not installed"),
    _Cause(RegistryUnreachableError, "failed to query available provider packages", _OFFLINE),  # Terraform
    _Cause(RegistryUnreachableError, "failed to resolve provider packages", _OFFLINE),  # OpenTofu
    _Cause(RegistryUnreachableError, "failed to install provider", _OFFLINE),
    _Cause(BackendLoginError, "error acquiring the state lock", _LOGIN),
    _Cause(BackendLoginError, "error loading state", _LOGIN),
    _Cause(BackendLoginError, "error refreshing state", _LOGIN),
    _Cause(BackendLoginError, "failed to load state", _LOGIN),
    _Cause(BackendLoginError, "failed to refresh state", _LOGIN),
    _Cause(BackendLoginError, "failed to get existing workspaces", _LOGIN),
    _Cause(BackendUnreachableError, "error acquiring the state lock", _OFFLINE),
    _Cause(BackendUnreachableError, "error loading state", _OFFLINE),
    _Cause(BackendUnreachableError, "error loading default state", _OFFLINE),
    _Cause(BackendUnreachableError, "error refreshing state", _OFFLINE),
    _Cause(BackendUnreachableError, "error refreshing the state", _OFFLINE),
    _Cause(BackendUnreachableError, "failed to load state", _OFFLINE),
    _Cause(BackendUnreachableError, "failed to refresh state", _OFFLINE),
    _Cause(BackendUnreachableError, "failed to refresh source state", _OFFLINE),
    _Cause(BackendUnreachableError, "failed to refresh destination state", _OFFLINE),
    _Cause(BackendUnreachableError, "failed to get existing workspaces", _OFFLINE),
)


def _first_cause(finding: Finding) -> tuple[int, type[TofuError]]:
    for rank, candidate in enumerate(_CAUSES):
        if candidate.fits(finding):
            return rank, candidate.error
    return len(_CAUSES), TofuError


def cause(finding: Finding) -> type[TofuError]:
    """Return the error that a finding amounts to, `TofuError` when it is no special one."""
    return _first_cause(finding)[1]


def failure(what: str, findings: tuple[Finding, ...], ending: str) -> TofuError:
    """Return the error of a verb that failed.

    Args:
        what: Which verb, where: "`tofu plan` in /srv/site".
        findings: Everything that the engine reported.
        ending: How the program ended, for a failure without a report.
    """
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return TofuError(f"{what} failed without a report. {ending}", findings)
    rank, error = min((_first_cause(finding) for finding in errors), key=lambda ranked: ranked[0])
    leading = next(finding for finding in errors if _first_cause(finding)[0] == rank)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    headline = leading.summary.partition("\n")[0].rstrip(".:")
    return error(f"{what} failed: {headline}{more}.", findings)


_HEADING = re.compile(r"^(Error|Warning): ", re.MULTILINE)


def read_text(text: str) -> tuple[Finding, ...]:
    """Cut the plain text of a verb without JSON output into findings.

    The form is the same in every version: a line `Error: <summary>`, an empty line, the detail. A few verbs
    of Terraform print the bare message instead; then the whole text is one finding.
    """
    plain = text.strip()
    if not plain:
        return ()
    parts = _HEADING.split(plain)
    if len(parts) == 1:
        return (Finding(severity=Severity.ERROR, summary=plain, detail=""),)
    found = []
    for word, body in zip(parts[1::2], parts[2::2], strict=True):
        summary, _, detail = body.partition("\n\n")
        severity = Severity.ERROR if word == "Error" else Severity.WARNING
        found.append(Finding(severity=severity, summary=summary.strip(), detail=detail.strip()))
    return tuple(found)
