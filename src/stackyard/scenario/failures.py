"""What can go wrong in a scenario."""

from __future__ import annotations

from stackyard.base.errors import StackyardError, UsageError

__all__ = [
    "CommandFailedError",
    "MachineUnfitError",
    "NotConfirmedError",
    "PhaseFailedError",
    "RebootNeededError",
    "RetiredError",
    "RootNeededError",
    "ScenarioTimeoutError",
    "UnknownPhaseError",
    "UnknownScenarioError",
]


class PhaseFailedError(StackyardError):
    """A phase of a scenario ended without success."""

    code = "E-SCENARIO-PHASE"
    summary = "A phase of the scenario failed"
    default_remedy = "Correct what it names and run the scenario again; what is done already is found done."


class CommandFailedError(StackyardError):
    """A command that a scenario ran on a machine ended with an error, or did not end in its time.

    Args:
        detail: Which command, where, how it ended and what it said last.
        status: Its exit status; None when it did not end by itself.
    """

    code = "E-SCENARIO-COMMAND"
    summary = "A command on a machine failed"
    default_remedy = "Correct what the command says and run the scenario again."

    def __init__(self, detail: str, *, status: int | None) -> None:
        super().__init__(detail)
        self.status = status


class ScenarioTimeoutError(StackyardError):
    """A scenario was not done in the time that it had, and was stopped, on the other machine too."""

    code = "E-SCENARIO-TIMEOUT"
    summary = "The scenario took too long"
    default_remedy = "Run it again: it continues with the finished phases. Or allow more time with --timeout."


class RebootNeededError(StackyardError):
    """A scenario on this machine cannot continue before the machine is started with its new kernel."""

    code = "E-SCENARIO-REBOOT"
    summary = "This machine has to be restarted"
    default_remedy = "Restart it (`systemctl reboot`) and run the command again: it continues from there."


class RootNeededError(StackyardError):
    """A scenario changes this machine, and we are neither root nor can become root."""

    code = "E-SCENARIO-ROOT"
    summary = "This has to be done by root"
    default_remedy = "Run the command as root, or let sudo work without a password."


class MachineUnfitError(StackyardError):
    """The machine is not one that the scenario can work on."""

    code = "E-SCENARIO-MACHINE"
    summary = "The machine does not fit"
    default_remedy = "Put the machine in order, or name another one."


class NotConfirmedError(StackyardError):
    """A scenario that changes a machine for good was not confirmed."""

    code = "E-SCENARIO-ABORTED"
    summary = "Aborted"
    default_remedy = "Answer with y, or repeat the command with --yes."


class RetiredError(StackyardError):
    """A legacy scenario or option was asked for, and something else does its work now."""

    code = "E-SCENARIO-RETIRED"
    summary = "This was retired"
    default_remedy = "Use the command that the error names."


class UnknownScenarioError(UsageError):
    """There is no scenario of this name."""

    code = "E-SCENARIO-UNKNOWN"
    summary = "There is no such scenario"
    default_remedy = "`stackyard scenario list` shows them all."


class UnknownPhaseError(UsageError):
    """A phase is to be skipped that the scenario does not have."""

    code = "E-SCENARIO-PHASE-UNKNOWN"
    summary = "The scenario has no such phase"
    default_remedy = "`stackyard scenario phases NAME` shows them all."
