"""An apply whose processes are killed at a chosen call of the API."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.forking import fork_program
from tests.support.path_runs import Rig, WatchedJournal
from tests.support.processes import Watched

from pvelab.server.journal import JournalEntry

__all__ = ["children_of", "engine_killed", "program_killed"]


def children_of(pid: int, name: str) -> Iterator[int]:
    """Return the processes of a name that a process started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = path.read_text().rpartition(")")
            if int(tail.split()[1]) == pid and head.partition("(")[2].startswith(name):
                yield int(path.parent.name)


def program_killed(rig: Rig, journal: WatchedJournal, nth: int) -> bool:
    """Apply with the program and kill it after the work of the nth call; tell whether it came so far.

    The engine that it started loses its provider and its state; its end is waited for.
    """
    orphans: list[int] = []
    with open(os.devnull, "r+b") as nothing:
        number = nothing.fileno()
        program = fork_program(
            ("apply", "t", "--no-verify"),
            streams=(number, number, number),
            cwd=rig.yard.folder,
            env={**os.environ, **rig.yard.env},
        )

    def kill() -> None:
        orphans.extend(children_of(program.pid, "tofu"))
        program.kill()

    with _at(journal, nth, kill):
        status = program.wait()
    for pid in orphans:
        with Watched(pid) as engine:
            assert engine.has_ended(), f"the engine {pid} lives on"
    return status == -signal.SIGKILL


def engine_killed(rig: Rig, journal: WatchedJournal, nth: int) -> bool:
    """Apply in this process and kill the engine after the work of the nth call; tell whether one ran."""
    killed: list[int] = []

    def kill() -> None:
        for pid in children_of(os.getpid(), "tofu"):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with _at(journal, nth, kill):
        error = rig.apply()
    assert (error is not None) == bool(killed)
    return bool(killed)


@contextlib.contextmanager
def _at(journal: WatchedJournal, nth: int, action: Callable[[], None]) -> Iterator[None]:
    """Do something in the thread of the lab after the work of its nth call, before its answer."""
    first = journal.count

    def saw(entry: JournalEntry) -> None:
        if entry.number == first + nth:
            action()

    journal.on_call = saw
    try:
        yield
    finally:
        journal.on_call = None
