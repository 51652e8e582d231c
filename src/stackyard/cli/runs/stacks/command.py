"""The run of `stackyard stack run`: a program in the folder of each selected stack."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from stackyard.base import events, process, schedule
from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, InvalidInputError, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.selection import select_stacks
from stackyard.sources.stacks.order import build_whole_graph, order_stacks
from stackyard.sources.stacks.repository import find_stacks
from stackyard.sources.stacks.store import store_of

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["run_in_stacks"]

_ENGINES = ("tofu", "terraform")
_AT_ONCE = 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class _Found:
    """The stacks of a repository."""

    repository: StackRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommandEnd:
    """How the program ended in a stack."""

    returncode: int
    stdout: str
    stderr: str
    elapsed_s: float


StackEnd: TypeAlias = "_CommandEnd | InvalidInputError | tuple[str, ...]"


class _CommandFailedError(Exception):
    """The program failed in a stack, so that those after it are skipped."""

    def __init__(self, end: _CommandEnd) -> None:
        super().__init__(end.returncode)
        self.end = end


async def run_in_stacks(session: Session, values: dict[str, Any]) -> Result:
    """Run a program in each stack that the options select, in their order."""
    words = tuple(values["engine_words"])
    if not words:
        raise UsageError("Write the program after `--`: stackyard stack run -- tofu validate")
    # Only what finds stacks: what runs an engine takes half a second to load.
    repository = find_stacks()
    selected = await select_stacks(repository, store_of(repository), values)
    graph = order_stacks(build_whole_graph(repository), selected.names, is_reversed=values["reverse"])
    shared = await _environment(words[0])

    async def work(name: str) -> _CommandEnd:
        stack = repository.find(name)
        began_s = time.monotonic()
        with events.step(session.emit, f"run {name}", f"Running in stack:{name}"):
            ended = await process.run(_command(words, stack, shared), check=False)
            end = _CommandEnd(
                returncode=ended.returncode,
                stdout=ended.stdout,
                stderr=ended.stderr,
                elapsed_s=time.monotonic() - began_s,
            )
            if ended.returncode != 0:
                raise _CommandFailedError(end)
            return end

    with process.watch_ends():
        results = await schedule.walk(graph, work, parallel=values["jobs"] or _AT_ONCE)
    ends = {name: _end_of(settled) for name, settled in results.settled.items()}
    return Result(
        document={"stacks": [_document(name, end) for name, end in ends.items()]},
        show=lambda writer: _show(writer, ends),
        status=ExitStatus.DONE if results.is_done else ExitStatus.FAILED,
    )


async def _environment(program: str) -> dict[str, str]:
    """Return the user's environment; an engine that only stackyard has installed is on its PATH too."""
    if program not in _ENGINES or shutil.which(program) is not None:
        return dict(os.environ)
    from stackyard.engine.tools.find import find_engine  # lazy: only for an engine that is not on PATH
    from stackyard.engine.version import Flavour  # lazy: as above

    engine = (await find_engine(only=Flavour(program))).engine
    return {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:{engine.path.parent}"}


def _command(words: tuple[str, ...], stack: Stack, shared: dict[str, str]) -> process.Command:
    own = {
        "STACKYARD_STACK_NAME": stack.name,
        "STACKYARD_STACK_PATH": stack.path,
        "STACKYARD_STACK_LAYER": stack.layer,
        "STACKYARD_STACK_TAGS": ",".join(stack.settings.tags),
    }
    return process.Command(argv=words, env={**shared, **own}, cwd=stack.folder)


def _end_of(settled: schedule.Settled[str, _CommandEnd]) -> StackEnd:
    """Return how the program ended in a stack, or why it was not started: other stacks, or a mistake."""
    if isinstance(settled, schedule.Done):
        return settled.value
    if isinstance(settled, schedule.Failed):
        if isinstance(settled.error, _CommandFailedError):
            return settled.error.end
        if isinstance(settled.error, InvalidInputError):
            return settled.error
        raise settled.error
    return settled.because


def _document(name: str, end: StackEnd) -> dict[str, Any]:
    if isinstance(end, InvalidInputError):
        return {"target": f"stack:{name}", "status": "failed", "error": describe(end)}
    if not isinstance(end, _CommandEnd):
        return {
            "target": f"stack:{name}",
            "status": "skipped",
            "waiting_for": [f"stack:{one}" for one in end],
        }
    return {
        "target": f"stack:{name}",
        "status": "done" if end.returncode == 0 else "failed",
        "exit_status": end.returncode,
        "stdout": end.stdout,
        "stderr": end.stderr,
        "elapsed_s": round(end.elapsed_s, 3),
    }


def _show(writer: TextWriter, ends: dict[str, StackEnd]) -> None:
    if not ends:
        writer.line("No stack is selected.", style="green")
    for name, end in ends.items():
        if isinstance(end, InvalidInputError):
            writer.line(f"stack:{name}: not valid: {end.detail}", style="red")
            continue
        if not isinstance(end, _CommandEnd):
            reason = ", ".join(f"stack:{one}" for one in end)
            writer.line(f"stack:{name}: skipped, because of {reason}", style="yellow")
            continue
        if end.returncode == 0:
            writer.line(f"stack:{name}: done", style="green")
        else:
            writer.line(f"stack:{name}: failed with status {end.returncode}", style="red")
        for text in (end.stdout, end.stderr):
            if text:
                writer.lines(text.rstrip("\n"))
