"""Running the script that applies a spec."""

from __future__ import annotations

from pathlib import Path

from stackyard.base import events, process
from stackyard.base.errors import ExitStatus, StackyardError

__all__ = ["SpecNotAppliedError", "run_script"]

# Packages come from the network; this only ends a run that hangs.
_TIMEOUT_S = 3600.0


class SpecNotAppliedError(StackyardError):
    """A step of applying a spec to this machine failed; what was done before it stays done."""

    code = "E-SPEC-APPLY"
    summary = "The spec could not be applied"
    default_remedy = "Correct what the output names, and apply it again: what is already so is left alone."
    exit_status = ExitStatus.CHANGES


async def run_script(script: str, *, root: str | None, emit: events.Emit) -> float:
    """Run a script that applies a spec, and return how long it took.

    Args:
        script: The script.
        root: The folder to work below; None works on this machine.
        emit: Told each line that it prints.

    Raises:
        SpecNotAppliedError: One of its steps failed.
    """
    extra = {} if root is None else {"STACKYARD_ROOT": _absolute(root)}
    command = process.Command(
        argv=("sh", "-s"), env=process.environment(extra), stdin=script.encode(), timeout_s=_TIMEOUT_S
    )

    def tell(stream: process.Stream, line: str) -> None:
        is_error = stream is process.Stream.STDERR
        level = events.LogLevel.WARNING if is_error else events.LogLevel.INFO
        emit(events.LogLine(level=level, source="spec", text=line))

    try:
        return (await process.run(command, tell)).elapsed_s
    except process.ProcessFailedError as err:
        raise SpecNotAppliedError(err.detail) from err


def _absolute(root: str) -> str:
    return str(Path(root).absolute())
