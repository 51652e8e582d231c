"""Every kind of place keeps the same promises, and a state gets from each to each."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

import pytest
from tests.support.state_documents import encrypted_document, resource, state_document
from tests.support.state_places import KINDS, Spot, make_spot, stack

from stackyard.base.errors import BusyError, StackyardError
from stackyard.state import LockInfo, make_lock_info, read_document
from stackyard.state.moving import Moved, MoveRefusedError, NothingToMoveError, move_state

__all__ = ["stack"]

FIRST, SECOND = state_document(1, resource("vm", "a")), state_document(2, resource("vm", "b"))
NOT_FILE = [kind for kind in KINDS if kind != "file"]
PAIRS = [(one, other) for one in KINDS for other in KINDS if "file" in (one, other) or one == "store"]


def new_lock() -> LockInfo:
    return make_lock_info(LockInfo(id=str(uuid.uuid4()), operation="OperationTypeApply", who="me@here"))


@pytest.fixture(params=KINDS)
def spot(request: pytest.FixtureRequest, tmp_path: Path, stack: contextlib.ExitStack) -> Spot:
    return make_spot(request.param, tmp_path / "spot", stack)


def fill(spot: Spot, data: bytes) -> None:
    """Write as an engine does: under a lock."""
    place, lock = spot.open(), new_lock()
    with contextlib.closing(place):
        place.lock(lock)
        place.write(data, lock)
        place.unlock(lock)


def move(source: Spot, target: Spot, keep_source: bool = False) -> Moved:
    with contextlib.closing(source.open()) as origin, contextlib.closing(target.open()) as destination:
        return move_state(origin, destination, keep_source=keep_source)


def test_an_empty_place_holds_nothing(spot: Spot) -> None:
    assert spot.read() is None


def test_what_is_written_is_read(spot: Spot) -> None:
    fill(spot, FIRST)
    assert spot.read() == FIRST
    fill(spot, SECOND)
    assert spot.read() == SECOND


# A process cannot lock a file against itself; two processes try it elsewhere.
@pytest.mark.parametrize("spot", NOT_FILE, indirect=True)
def test_a_lock_keeps_others_out_until_it_is_released(spot: Spot) -> None:
    one, other = spot.open(), spot.open()
    with contextlib.closing(one), contextlib.closing(other):
        mine, theirs = new_lock(), new_lock()
        one.lock(mine)
        with pytest.raises(BusyError, match=mine.id):
            other.lock(theirs)
        one.unlock(mine)
        third = new_lock()
        other.lock(third)
        other.unlock(third)


# A process cannot lock a file against itself; two processes try it elsewhere.
@pytest.mark.parametrize("spot", NOT_FILE, indirect=True)
def test_unlocking_what_is_not_ours_changes_nothing(spot: Spot) -> None:
    one, other = spot.open(), spot.open()
    with contextlib.closing(one), contextlib.closing(other):
        mine = new_lock()
        one.lock(mine)
        other.unlock(new_lock())
        with pytest.raises(BusyError):
            other.lock(new_lock())
        one.unlock(mine)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_state_gets_from_each_place_to_each(
    one: str, other: str, tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    source, target = make_spot(one, tmp_path / "a", stack), make_spot(other, tmp_path / "b", stack)
    fill(source, SECOND)
    moved = move(source, target)
    assert (moved.serial, moved.was_written, moved.was_resumed) == (2, True, False)
    assert target.read() == SECOND
    # The http protocol has no way to put a state out of use; everywhere else nobody can go on with it.
    assert source.read() == (SECOND if one == "http" else None)
    assert (moved.outcome is None) == (one == "http")
    fill(target, state_document(3))


def test_an_encrypted_state_moves_as_it_is(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    source, target = make_spot("file", tmp_path / "a", stack), make_spot("store", tmp_path / "b", stack)
    fill(source, encrypted_document(7))
    move(source, target)
    assert target.read() == encrypted_document(7)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (state_document(1, lineage="another"), "another state"),
        (state_document(9), "newer"),
        (state_document(2, resource("vm", "other")), "another content"),
    ],
)
def test_a_destination_that_holds_something_else_is_left_alone(
    there: bytes, reason: str, spot: Spot, tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    source = make_spot("file", tmp_path / "source", stack)
    fill(source, SECOND)
    fill(spot, there)
    with pytest.raises(MoveRefusedError, match=reason):
        move(source, spot)
    assert source.read() == SECOND
    assert spot.read() == there
    # Both are free again.
    fill(source, state_document(3))
    fill(spot, state_document(10, lineage=read_document(there).lineage))


def test_an_older_serial_at_the_destination_is_replaced(
    spot: Spot, tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    source = make_spot("file", tmp_path / "source", stack)
    fill(source, SECOND)
    fill(spot, FIRST)
    assert move(source, spot).was_written
    assert spot.read() == SECOND


def test_a_locked_destination_leaves_everything_as_it_was(
    tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    source, target = make_spot("file", tmp_path / "a", stack), make_spot("store", tmp_path / "b", stack)
    fill(source, SECOND)
    other, lock = target.open(), new_lock()
    with contextlib.closing(other):
        other.lock(lock)
        with pytest.raises(BusyError, match=lock.id):
            move(source, target)
        assert source.read() == SECOND
        other.unlock(lock)
    assert move(source, target).serial == 2


def test_nothing_at_the_source_makes_nothing_at_the_destination(
    spot: Spot, tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    target = make_spot("file", tmp_path / "target", stack)
    with pytest.raises(NothingToMoveError):
        move(spot, target)
    assert not (tmp_path / "target" / "terraform.tfstate").exists()


def test_a_copy_leaves_the_source_in_use(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    source, target = make_spot("store", tmp_path / "a", stack), make_spot("file", tmp_path / "b", stack)
    fill(source, FIRST)
    assert move(source, target, keep_source=True).outcome is None
    assert (source.read(), target.read()) == (FIRST, FIRST)
    fill(source, SECOND)


def test_there_and_back_again(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    one, other = make_spot("file", tmp_path / "a", stack), make_spot("s3", tmp_path / "b", stack)
    fill(one, FIRST)
    for source, target in ((one, other), (other, one), (one, other)):
        move(source, target)
    assert (one.read(), other.read()) == (None, FIRST)


def test_a_finished_move_can_be_repeated(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    source, target = make_spot("file", tmp_path / "a", stack), make_spot("store", tmp_path / "b", stack)
    fill(source, SECOND)
    for was_written in (True, False):
        assert move(source, target).was_written is was_written


def test_a_finished_move_whose_destination_lost_the_state_says_so(
    tmp_path: Path, stack: contextlib.ExitStack
) -> None:
    source, target = make_spot("store", tmp_path / "a", stack), make_spot("file", tmp_path / "b", stack)
    fill(source, SECOND)
    move(source, target)
    (tmp_path / "b" / "terraform.tfstate").unlink()
    with pytest.raises(StackyardError, match="no longer holds it"):
        move(source, target)
