"""A move that is killed at any point completes when it is repeated, and the state is never in doubt."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import run_python
from tests.support.state_documents import resource, state_document
from tests.support.state_places import KINDS, Spot, make_spot, stack

from stackyard.base.errors import BusyError
from stackyard.state import LockInfo, make_lock_info
from stackyard.state.moving import MoveJournal, MoveUnderWayError, StateLocation, move_state
from stackyard.state.moving.file_location import FileLocation

__all__ = ["stack"]

STATE = state_document(5, resource("vm", "a"))
# Each kind as the source, and as the destination; where to begin, and how many points to leave out: with S3,
# each takes seconds.
# Every moment of every pair takes a minute: the usual tests take every sixth, `make soak` all of them.
WHOLE = [("file", "store"), ("store", "file"), ("http", "file"), ("file", "http")]
PAIRS = [
    *((*pair, range(1 + number, 200, 6)) for number, pair in enumerate(WHOLE)),
    ("store", "s3", range(4, 200, 12)),
    ("s3", "store", range(1, 200, 12)),
    *(pytest.param(*pair, range(1, 200), marks=pytest.mark.soak) for pair in WHOLE),
]
NEVER = 10_000


class Deadly:
    """Counts the steps of a move, before and after each call, and dies at one of them as by kill -9."""

    def __init__(self, dies_at: int) -> None:
        self._left = dies_at

    def wrap(self, target: Any, *names: str) -> None:
        for name in names:
            setattr(target, name, self._step(getattr(target, name)))

    def _step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            self._count()
            result = call(*args, **options)
            self._count()
            return result

        return step

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def moved_in_a_child(source: Spot, target: Spot, dies_at: int) -> bool:
    """Move in a process of its own that dies at a step; tell whether it came to the end before."""
    child = os.fork()
    if child == 0:
        # Nothing of the test may run on here, whatever happens.
        status = 1
        try:
            deadly = Deadly(dies_at)
            origin, destination = source.open(), target.open()
            journal = MoveJournal(origin.label, destination.label)
            for place in (origin, destination):
                deadly.wrap(place, "lock", "unlock", "read", "write", "retire")
            deadly.wrap(journal, "write")
            move_state(origin, destination, journal=journal)
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert os.WIFSIGNALED(ended) or os.WEXITSTATUS(ended) == 0, "the move failed"
    return not os.WIFSIGNALED(ended)


def write(place: StateLocation, data: bytes) -> None:
    lock = make_lock_info(LockInfo(id=f"lock-{len(data)}-{id(place)}", who="tests", operation="apply"))
    with contextlib.closing(place):
        place.lock(lock)
        place.write(data, lock)
        place.unlock(lock)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("one", "other", "points"), PAIRS)
def test_a_killed_move_completes_when_it_is_repeated(
    one: str, other: str, points: range, tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    assert {one, other} <= set(KINDS)
    for point in points:
        source = make_spot(one, tmp_path / f"{point}-a", stack)
        target = make_spot(other, tmp_path / f"{point}-b", stack)
        write(source.open(), STATE)
        is_complete = moved_in_a_child(source, target, point)
        # At every moment one of both holds the whole state, and neither anything else.
        found = (source.read(), target.read())
        assert STATE in found
        assert set(found) <= {STATE, None}
        assert moved_in_a_child(source, target, NEVER)
        assert target.read() == STATE
        assert source.read() == (STATE if one == "http" else None)
        # No lock is left behind.
        write(target.open(), state_document(6, resource("vm", "b")))
        if is_complete:
            assert point > 20
            return
    pytest.fail("the move never came to its end")


def test_the_same_move_is_made_by_one_process_at_a_time(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    source, target = (make_spot("file", tmp_path / name, stack) for name in "ab")
    write(source.open(), STATE)
    with (
        contextlib.closing(source.open()) as origin,
        contextlib.closing(target.open()) as destination,
        MoveJournal(origin.label, destination.label).hold(),
        pytest.raises(MoveUnderWayError),
    ):
        move_state(origin, destination)
    assert source.read() == STATE


def test_a_file_that_another_process_has_locked_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(STATE)
    place = FileLocation(path)
    lock = make_lock_info(LockInfo(id="our-lock", who="us@here", operation="OperationTypeApply"))
    place.lock(lock)
    try:
        # The record lock of the engines, asked for by another process.
        tried = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("free")
    except OSError:
        print("locked")
"""
        assert run_python(tried, str(path)).strip() == "locked"
        assert place.read() == STATE
        # Reading has not let go of it.
        assert run_python(tried, str(path)).strip() == "locked"
        assert (tmp_path / ".terraform.tfstate.lock.info").exists()
    finally:
        place.unlock(lock)
    assert run_python(tried, str(path)).strip() == "free"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["terraform.tfstate"]


def test_a_file_that_an_engine_has_locked_says_who(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(STATE)
    info = make_lock_info(LockInfo(id="their-lock", who="they@there", operation="OperationTypeApply"))
    (tmp_path / ".terraform.tfstate.lock.info").write_bytes(info.body())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            FileLocation(path).lock(info)
            os.write(writer, b"locked")
            signal.pause()
        finally:
            os._exit(0)
    try:
        assert os.read(reader, 6) == b"locked"
        with pytest.raises(BusyError, match="they@there"):
            FileLocation(path).lock(make_lock_info(LockInfo(id="ours")))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
