"""How a verb is run and how its answer is read: as a stream of messages, one JSON document, or lines.

`tofu` and `statefile` hold the verbs; this holds what they share. A verb that fails raises an error of
`stackyard.engine.failures`; one that succeeds with an answer that makes no sense, `EngineBrokenError`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import StackyardError
from stackyard.engine import failures, ui
from stackyard.engine.var_files import open_var_files
from stackyard.engine.version import EngineBrokenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.engine.var_files import OpenVarFiles
    from stackyard.engine.workdir import Workdir

__all__ = [
    "Answer",
    "EngineTimeoutError",
    "lock_wait",
    "name",
    "read_document",
    "read_findings",
    "read_lines",
    "run_silent",
    "run_stream",
]

# A verb that only reads has nothing to save when it is interrupted.
_READ_GRACE_S = 5.0
_QUOTED_CHARACTERS = 2000
# A state of ten thousand guests is some 100 MB of JSON, and a plan holds it twice.
_OUTPUT_LIMIT_BYTES = 512 * 2**20


def name(workdir: Workdir, verb: str) -> str:
    """Name a verb and its place for an error: "`tofu plan` in /srv/site"."""
    return f"`{workdir.engine.flavour.value} {verb}` in {workdir.folder}"


def lock_wait(workdir: Workdir) -> str:
    """Return the argument that says how long to wait for the state lock."""
    return f"-lock-timeout={round(workdir.limits.lock_wait_s * 1000)}ms"


class Answer(ui.Stream):
    """What a verb with a stream of messages said, and its exit status."""

    status: int = 0


class EngineTimeoutError(StackyardError):
    """OpenTofu or Terraform did not end in the time it was given, and was stopped."""

    code = "E-ENGINE-TIMEOUT"
    summary = "The engine took too long"
    default_remedy = "Run the command again with -v to see what it waits for; a provider or backend may hang."


async def run_stream(
    answer: Answer, verb: str, args: tuple[str, ...], *, accepted: tuple[int, ...] = (0,)
) -> None:
    """Run a verb that reports as it works, and fill in the answer, also when it fails.

    Raises:
        TofuError: It failed, that is ended with a status that is not accepted.
        EngineBrokenError: It ended well without a single message.
        EngineTimeoutError: It took too long.
    """
    workdir = answer.workdir
    command = _command(workdir, verb, ("-json", *args), reads=False)
    with open_var_files(workdir, verb) as answer.var_files:
        # However much it reports, nothing may stop an apply for that: each message is read and let go.
        command = dataclasses.replace(_with_values(command, verb, answer.var_files), keeps_output=False)
        completed = await _run(workdir, verb, command, answer)
    answer.status = completed.returncode
    said = "\n".join(answer.stray)
    if answer.status not in accepted:
        raise _failure(workdir, verb, completed, said, tuple(answer.findings))
    if not answer.spoke:
        raise _make_broken_error(workdir, verb, "not one message in JSON", said)


async def read_document(
    workdir: Workdir, verb: str, args: tuple[str, ...] = (), *, accepted: tuple[int, ...] = (0,)
) -> Mapping[str, Any]:
    """Run a verb that prints one JSON object and changes nothing.

    Raises:
        TofuError: It failed.
        EngineBrokenError: It printed something else.
        EngineTimeoutError: It took too long.
    """
    return (await _read_document(workdir, verb, args, accepted))[0]


async def read_findings(
    workdir: Workdir, verb: str, *, accepted: tuple[int, ...] = (0,)
) -> tuple[failures.Finding, ...]:
    """Run a verb whose one JSON object lists diagnostics.

    Raises:
        TofuError: It failed.
        EngineBrokenError: It printed something else.
        KeyError: It printed an object without diagnostics.
    """
    document, var_files = await _read_document(workdir, verb, (), accepted)
    return tuple(ui.read_finding(workdir, found, var_files) for found in document["diagnostics"])


async def _read_document(
    workdir: Workdir, verb: str, args: tuple[str, ...], accepted: tuple[int, ...]
) -> tuple[Mapping[str, Any], OpenVarFiles]:
    completed, var_files = await _run_text(
        workdir, verb, _command(workdir, verb, ("-json", *args), reads=True)
    )
    try:
        document = parse_json(completed.stdout, LARGE)
    except JsonError:
        document = None
    said = workdir.redactor(var_files.translate(completed.stderr))
    if completed.returncode not in accepted or (completed.returncode != 0 and not isinstance(document, dict)):
        raise _failure(workdir, verb, completed, said, failures.read_text(said))
    if not isinstance(document, dict):
        raise _make_broken_error(workdir, verb, "no JSON object, or one that is cut off", said)
    return document, var_files


async def read_lines(workdir: Workdir, verb: str, args: tuple[str, ...] = ()) -> str:
    """Run a verb that prints plain text and changes nothing; return the text.

    Raises:
        TofuError: It failed.
        EngineTimeoutError: It took too long.
    """
    completed, var_files = await _run_text(workdir, verb, _command(workdir, verb, args, reads=True))
    _raise_text_failure(workdir, verb, completed, var_files)
    return completed.stdout


async def run_silent(
    workdir: Workdir, verb: str, args: tuple[str, ...], *, stdin: bytes | None = None
) -> None:
    """Run a verb that changes the state and has nothing to say that we need.

    Raises:
        TofuError: It failed.
        EngineTimeoutError: It took too long.
    """
    command = _command(workdir, verb, args, reads=False, stdin=stdin)
    completed, var_files = await _run_text(workdir, verb, command)
    _raise_text_failure(workdir, verb, completed, var_files)


def _command(
    workdir: Workdir, verb: str, args: tuple[str, ...], *, reads: bool, stdin: bytes | None = None
) -> process.Command:
    limits = workdir.limits
    return process.Command(
        pass_fds=workdir.descriptors,
        argv=(str(workdir.engine.path), *verb.split(), "-no-color", *args),
        env=workdir.env(),
        cwd=workdir.folder,
        stdin=stdin,
        timeout_s=limits.read_s if reads else limits.work_s,
        grace_s=_READ_GRACE_S if reads else limits.grace_s,
        output_limit_bytes=_OUTPUT_LIMIT_BYTES,
        redactor=workdir.redactor,
    )


def _with_values(command: process.Command, verb: str, var_files: OpenVarFiles) -> process.Command:
    """Return a command that also gets the variables files; options come before what they do not belong to."""
    options = 1 + len(verb.split())
    argv = (*command.argv[:options], *var_files.arguments, *command.argv[options:])
    return dataclasses.replace(command, argv=argv, pass_fds=(*command.pass_fds, *var_files.descriptors))


async def _run_text(
    workdir: Workdir, verb: str, command: process.Command
) -> tuple[process.Completed, OpenVarFiles]:
    with open_var_files(workdir, verb) as var_files:
        return await _run(workdir, verb, _with_values(command, verb, var_files)), var_files


async def _run(
    workdir: Workdir, verb: str, command: process.Command, on_line: process.OnLine | None = None
) -> process.Completed:
    try:
        return await process.run(command, on_line, check=False)
    except process.ProcessTimeoutError:
        # The error of the process quotes its output, which may be a state with its secrets: leave it behind.
        raise EngineTimeoutError(
            f"{name(workdir, verb)} did not end within {command.timeout_s:g} s and was stopped."
        ) from None
    except process.ProcessOutputError as err:
        raise EngineBrokenError(err.detail) from err


def _raise_text_failure(
    workdir: Workdir, verb: str, completed: process.Completed, var_files: OpenVarFiles
) -> None:
    if completed.returncode != 0:
        said = workdir.redactor(var_files.translate(completed.stderr))
        raise _failure(workdir, verb, completed, said, failures.read_text(said))


def _failure(
    workdir: Workdir,
    verb: str,
    completed: process.Completed,
    said: str,
    findings: tuple[failures.Finding, ...],
) -> failures.TofuError:
    quoted = said.strip()[-_QUOTED_CHARACTERS:] or "nothing"
    status = completed.returncode
    how = f"status {status}" if status >= 0 else f"signal {-status}"
    return failures.failure(name(workdir, verb), findings, f"It ended with {how} and said: {quoted}")


def _make_broken_error(workdir: Workdir, verb: str, got: str, said: str) -> EngineBrokenError:
    quoted = said.strip()[-_QUOTED_CHARACTERS:]
    more = f" It said: {quoted}" if quoted else ""
    return EngineBrokenError(f"{name(workdir, verb)} ended well but printed {got}.{more}")
