"""The run of `stackyard stack run`: a program in the folder of each selected stack."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events, process, schedule
from stackyard.base.directories import PROJECT_FOLDER
from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.selection import select_stacks
from stackyard.sources.site.store_choice import choose_store, read_site_store
from stackyard.sources.stacks.repository import find_stacks
from stackyard.sources.stacks.walk import order_stacks

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore

__all__ = ["run_in_stacks"]

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


class _CommandFailedError(Exception):
    """The program failed in a stack, so that those after it are skipped."""

    def __init__(self, end: _CommandEnd) -> None:
        super().__init__(end.returncode)
        self.end = end


async def run_in_stacks(session: Session, values: dict[str, Any]) -> Result:
    """Run a program in each stack that the options select, in their order."""
    words = tuple(values["engine_words"])
    if not words:
        raise UsageError("Name the program behind `--`: stackyard stack run -- tofu validate")
    # Only what finds stacks: what runs an engine takes half a second to load.
    repository = find_stacks()
    selected = await select_stacks(_Found(repository), _store_of(repository), values)
    names = [name for name in selected.names if name in repository.stacks]
    graph = order_stacks(repository.graph(), names, is_reversed=values["reverse"])
    shared = dict(os.environ)

    async def work(name: str) -> _CommandEnd:
        stack = repository.stacks[name]
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


def _store_of(repository: StackRepository) -> ChosenStore:
    root = repository.root
    return choose_store(root, root / PROJECT_FOLDER, site_store=read_site_store(root))


def _command(words: tuple[str, ...], stack: Stack, shared: dict[str, str]) -> process.Command:
    own = {
        "STACKYARD_STACK_NAME": stack.name,
        "STACKYARD_STACK_PATH": stack.path,
        "STACKYARD_STACK_LAYER": stack.layer,
        "STACKYARD_STACK_TAGS": ",".join(stack.settings.tags),
    }
    return process.Command(argv=words, env={**shared, **own}, cwd=stack.folder)


def _end_of(settled: schedule.Settled[str, _CommandEnd]) -> _CommandEnd | tuple[str, ...]:
    """Return how the program ended in a stack, or the stacks because of which it was not started."""
    if isinstance(settled, schedule.Done):
        return settled.value
    if isinstance(settled, schedule.Failed):
        if isinstance(settled.error, _CommandFailedError):
            return settled.error.end
        raise settled.error
    return settled.because


def _document(name: str, end: _CommandEnd | tuple[str, ...]) -> dict[str, Any]:
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


def _show(writer: TextWriter, ends: dict[str, _CommandEnd | tuple[str, ...]]) -> None:
    if not ends:
        writer.line("No stack is selected.", style="green")
    for name, end in ends.items():
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
