"""A test that leaves descriptors open is named; what Python collects as garbage is not held against it."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.descriptors import MOST_HELD_BY_A_WORKER, count_descriptors, few_left_open

pytestmark = pytest.mark.skipif(count_descriptors() == 0, reason="the system does not tell what is open")


@pytest.fixture
def opened() -> Iterator[list[int]]:
    descriptors: list[int] = []
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def test_a_few_are_left_without_a_word_and_more_are_named(tmp_path: Path, opened: list[int]) -> None:
    (tmp_path / "store").touch()

    def leave(number: int) -> None:
        with few_left_open("the test", most=3):
            opened.extend(os.open(tmp_path / "store", os.O_RDONLY) for _ in range(number))

    leave(3)
    with pytest.raises(AssertionError, match=r"the test left 4 descriptors open, .*/store"):
        leave(4)


def test_what_is_garbage_is_closed_and_not_counted(tmp_path: Path) -> None:
    (tmp_path / "store").touch()

    class Held:
        def __init__(self) -> None:
            self.itself = self
            self.file = os.open(tmp_path / "store", os.O_RDONLY)

        def __del__(self) -> None:
            os.close(self.file)

    with few_left_open("the test", most=3):
        for _ in range(10):
            Held()
        # As the load of a command does.
        gc.freeze()


def test_small_leaks_of_many_tests_are_named_when_they_add_up(opened: list[int]) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(AssertionError, match=r"number [0-9]+ left 3 descriptors open"))
        for number in range(MOST_HELD_BY_A_WORKER):
            with few_left_open(f"number {number}", most=3):
                opened.extend(os.dup(2) for _ in range(3))
    assert count_descriptors() > MOST_HELD_BY_A_WORKER
    with few_left_open("who adds nothing", most=3):
        pass


def test_who_failed_is_not_named_a_second_time(opened: list[int]) -> None:
    with few_left_open("the test", is_excused=lambda: True, most=3):
        opened.extend(os.dup(2) for _ in range(4))
