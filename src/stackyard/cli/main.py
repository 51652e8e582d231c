"""From a command line to an exit status: choose the views, run the command, show how it ended."""

from __future__ import annotations

import itertools
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import errors
from stackyard.cli.command import EarlyResult
from stackyard.cli.result import Result
from stackyard.cli.root import root
from stackyard.cli.session import Session
from stackyard.cli.settings import CliSettings, read_settings
from stackyard.cli.spellings import refuse_other_names, translate_legacy_arguments
from stackyard.cli.views.deferred import DeferredProgress, SilentProgress
from stackyard.cli.views.output import HumanOutput, Output
from stackyard.cli.views.stream import SafeStream
from stackyard.cli.views.text_writer import TextWriter, is_dumb_terminal, wants_colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.deferred import Progress

__all__ = ["choose_progress", "main"]

# A message about the command line quotes what is there, and that can be megabytes.
_LONGEST_USAGE_CHARACTERS = 1000


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit status."""
    argv = translate_legacy_arguments(argv)
    settings = read_settings(argv)
    stdout, stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    colour = wants_colour(stderr, no_color=settings.no_color)
    error_writer = TextWriter(stderr, colour=colour, is_terminal=stderr.isatty())
    output = _choose_output(settings, stdout, error_writer)
    session = Session(output, choose_progress(settings, stderr, error_writer))
    try:
        status = _run(session, argv, settings)
    finally:
        _close_stores()
    stdout.flush()
    if stdout.failure is not None:
        if not isinstance(stdout.failure, errors.OutputClosedError):
            from stackyard.cli.views.failure import write_failure  # lazy: most runs do not fail

            write_failure(error_writer, stdout.failure)
        status = status or stdout.failure.exit_status
    stderr.flush()
    return int(status)


def _close_stores() -> None:
    """Close the connections to stores that the command used, if it used any."""
    if pool := sys.modules.get("stackyard.sources.store.pool"):
        pool.close_pooled()


def _choose_output(settings: CliSettings, stdout: SafeStream, error_writer: TextWriter) -> Output:
    if settings.is_events or settings.is_json:
        from stackyard.cli.views.machine import EventsOutput, JsonOutput  # lazy: for programs, not for humans

        return EventsOutput(stdout) if settings.is_events else JsonOutput(stdout, error_writer)
    colour = wants_colour(stdout, no_color=settings.no_color)
    return HumanOutput(TextWriter(stdout, colour=colour, is_terminal=stdout.isatty()), error_writer)


def choose_progress(settings: CliSettings, stderr: SafeStream, error_writer: TextWriter) -> Progress:
    """Return the view of a run's progress: none beside `--events`, live on a terminal, lines elsewhere."""
    if settings.is_events:
        return SilentProgress()

    def begin() -> Progress:
        if stderr.isatty() and not is_dumb_terminal():
            from stackyard.cli.views.live import LiveProgress  # lazy: rich costs 60 ms

            return LiveProgress(stderr, is_colour=error_writer.colour, is_verbose=settings.is_verbose)
        from stackyard.cli.views.progress import PlainProgress  # lazy: most runs have nothing to show

        return PlainProgress(error_writer, is_verbose=settings.is_verbose)

    return DeferredProgress(begin)


def _run(session: Session, argv: Sequence[str], settings: CliSettings) -> errors.ExitStatus:
    """Run the command and show how it ended."""
    ended = _outcome(session, argv, settings)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # All that is left is to write; a reader that does not read must not make Ctrl-C a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if isinstance(ended, Result):
        return ended.status
    session.end(ended)
    return ended.exit_status


def _outcome(session: Session, argv: Sequence[str], settings: CliSettings) -> Result | errors.StackyardError:
    """Run the command and show its result, and turn every way it can end into a value."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        session.output.begin(_list_verbs(argv))
        refuse_other_names(argv)
        result = _invoke(session, argv, settings)
        session.succeed(result)
    except errors.StackyardError as err:
        return err
    except (KeyboardInterrupt, click.Abort):
        return errors.InterruptedRunError("Stopped by Ctrl-C.")
    except click.ClickException as err:
        return errors.UsageError(_shorten(err.format_message()))
    except OSError as err:
        return errors.FileError.from_os_error(err, "use", err.filename or "the system")
    except Exception as err:  # the edge of the process: a defect is reported, never dumped on the user
        return _defect(err, settings)
    return result


def _list_verbs(argv: Sequence[str]) -> str:
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


def _invoke(session: Session, argv: Sequence[str], settings: CliSettings) -> Result:
    if settings.is_json and settings.is_events:
        raise errors.UsageError("--json and --events cannot be used together.")
    try:
        ended: Any = root.main(list(argv), prog_name="stackyard", standalone_mode=False, obj=session)
    except EarlyResult as answer:
        return answer.result
    if not isinstance(ended, Result):
        raise errors.InternalError(f"The command returned {type(ended).__name__} and not a result.")
    return ended


def _shorten(text: str) -> str:
    longest = _LONGEST_USAGE_CHARACTERS
    return text if len(text) <= longest else f"{text[:longest]}..."


def _defect(err: Exception, settings: CliSettings) -> errors.InternalError:
    detail = f"{type(err).__name__}: {err}"
    if settings.is_verbose:
        import traceback  # lazy: 14 ms, and only defects need it

        detail = "".join(traceback.format_exception(err)).rstrip()
    return errors.InternalError(detail)
