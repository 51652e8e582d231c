"""Descriptors that a test leaves open: few, or the test fails and they are named.

A worker runs thousands of tests with 1,024 descriptors; what each leaves behind ends in tests that fail far
from their cause.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator

from tests.support.processes import open_descriptors

# What lives as long as the session is opened by whichever test needs it first: the pipes of the program that
# `tests.support.cli` forks, a store of S3, the pollers of gRPC.
MOST_LEFT_BY_A_TEST = 12
# How long threads that were asked to end may take on a busy machine.
THREADS_END_S = 5.0
MOST_HELD_BY_A_WORKER = 96


def count_descriptors() -> int:
    """Return how many descriptors this process holds; none where the system does not tell."""
    try:
        # Without the one that lists them.
        return len(os.listdir("/proc/self/fd")) - 1
    except OSError:
        return 0


@contextlib.contextmanager
def few_left_open(
    who: str, *, is_excused: Callable[[], bool] = lambda: False, most: int = MOST_LEFT_BY_A_TEST
) -> Iterator[None]:
    """Fail when a block leaves more than a few descriptors open.

    Args:
        who: Whom to name.
        is_excused: Whether the block failed: the traceback of a failure holds all that it had open.
        most: How many are a few.

    Raises:
        AssertionError: Too many are open afterwards, also when Python has looked for garbage.
    """
    before = open_descriptors()
    yield
    if not _is_too_much(before, most):
        return
    # What a command has loaded is kept from the search for garbage, and what was open then with it.
    gc.unfreeze()
    gc.collect()
    # Threads of a service that was closed close their connections when they end, a moment later.
    until = time.monotonic() + THREADS_END_S
    while _is_too_much(before, most) and not is_excused() and time.monotonic() < until:
        time.sleep(0.05)
        gc.collect()
    if _is_too_much(before, most) and not is_excused():
        held = open_descriptors()
        left = ", ".join(sorted(held - before))
        raise AssertionError(
            f"{who} left {len(held) - len(before)} descriptors open, {len(held)} in all: {left}"
        )


def _is_too_much(before: set[str], most: int) -> bool:
    held = count_descriptors()
    # The number in all counts only against a test that adds to it.
    return held - len(before) > most or (held > max(MOST_HELD_BY_A_WORKER, len(before)))
