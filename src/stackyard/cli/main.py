"""From a command line to an exit status: choose the views, run the command, show how it ended."""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING, Any

import click

import stackyard
from stackyard import diagnostics, errors, events
from stackyard.cli.command import Answer
from stackyard.cli.result import Result
from stackyard.cli.root import root
from stackyard.cli.session import Session
from stackyard.cli.settings import Settings, read_settings
from stackyard.cli.views.failure import write_failure
from stackyard.cli.views.output import EventsOutput, HumanOutput, JsonOutput, Output
from stackyard.cli.views.paper import Paper, wants_colour
from stackyard.cli.views.progress import PlainProgress, Progress, SilentProgress
from stackyard.cli.views.stream import SafeStream

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["choose_progress", "main"]


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit status."""
    settings = read_settings(argv)
    stdout, stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    error_paper = Paper(stderr, colour=wants_colour(stderr, no_color=settings.no_color))
    output = _choose_output(settings, stdout, error_paper)
    session = Session(output, choose_progress(settings, stderr, error_paper))
    status = _run(session, argv, settings)
    stdout.flush()
    if stdout.failure is not None:
        write_failure(error_paper, stdout.failure)
        status = status or stdout.failure.exit_status
    stderr.flush()
    return int(status)


def _choose_output(settings: Settings, stdout: SafeStream, error_paper: Paper) -> Output:
    if settings.is_events:
        return EventsOutput(stdout)
    if settings.is_json:
        return JsonOutput(stdout, error_paper)
    colour = wants_colour(stdout, no_color=settings.no_color)
    return HumanOutput(Paper(stdout, colour=colour, is_terminal=stdout.isatty()), error_paper)


def choose_progress(settings: Settings, stderr: SafeStream, error_paper: Paper) -> Progress:
    """Return the view of a run's progress: none beside `--events`, live on a terminal, lines elsewhere."""
    if settings.is_events:
        return SilentProgress()
    if stderr.isatty():
        from stackyard.cli.views.deferred import DeferredProgress  # lazy: only terminals draw

        return DeferredProgress(stderr, is_colour=error_paper.colour, is_verbose=settings.is_verbose)
    return PlainProgress(error_paper, is_verbose=settings.is_verbose)


def _run(session: Session, argv: Sequence[str], settings: Settings) -> errors.ExitStatus:
    """Run the command between the first and the last event."""
    began = time.monotonic()
    ended = _outcome(session, argv, settings)
    session.progress.close()
    if isinstance(ended, Result):
        status, document = ended.status, ended.document
        session.output.succeed(ended)
    else:
        status, document = ended.exit_status, {"error": diagnostics.describe(ended)}
        session.output.fail(ended)
    elapsed = round(time.monotonic() - began, 3)
    session.output.emit(events.RunFinished(exit_status=status, elapsed_s=elapsed, result=document))
    return status


def _named(argv: Sequence[str]) -> str:
    """Return the verbs of a command line and nothing else: what follows may be private."""
    verbs: list[str] = []
    command: click.Command | None = root
    for before, word in itertools.pairwise(["", *argv]):
        if word.startswith("-") or before == "--chdir":
            continue
        command = (
            command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        )
        if command is None:
            break
        verbs.append(word)
    return " ".join(["stackyard", *verbs])


def _outcome(session: Session, argv: Sequence[str], settings: Settings) -> Result | errors.StackyardError:
    """Run the command, and turn every way it can end into a value."""
    try:
        session.emit(events.RunStarted(command=_named(argv), version=stackyard.__version__))
        return _invoke(session, argv, settings)
    except errors.StackyardError as err:
        return err
    except (KeyboardInterrupt, click.Abort):
        return errors.InterruptedRunError("Stopped by Ctrl-C.")
    except click.ClickException as err:
        return errors.UsageError(err.format_message())
    except OSError as err:
        return errors.FileError.from_os_error(err, "use", err.filename or "the system")
    except Exception as err:  # the edge of the process: a defect is reported, never dumped on the user
        if settings.is_verbose:
            import traceback  # lazy: 14 ms, and only defects need it

            traceback.print_exc()
        return errors.InternalError(f"{type(err).__name__}: {err}")


def _invoke(session: Session, argv: Sequence[str], settings: Settings) -> Result:
    if settings.is_json and settings.is_events:
        raise errors.UsageError("--json and --events cannot be used together.")
    try:
        ended: Any = root.main(list(argv), prog_name="stackyard", standalone_mode=False, obj=session)
    except Answer as answer:
        return answer.result
    if not isinstance(ended, Result):
        raise errors.InternalError(f"The command returned {type(ended).__name__} and not a result.")
    return ended
