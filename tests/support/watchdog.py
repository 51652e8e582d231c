"""A test that its time limit cannot end: show where it hangs, and end the process that runs it.

pytest-timeout raises an exception in the test once. What then waits for ever while it cleans up, or sits in a
call that no signal interrupts, would hold the whole run until somebody kills it and nobody knows the test.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import threading
from collections.abc import Iterator

import pytest

# How long a test that was stopped may take to clean up.
GRACE_S = 120.0
STATUS = 70


@contextlib.contextmanager
def watch(item: pytest.Item) -> Iterator[None]:
    """End this process, with the stacks of all threads, where a test takes longer than it may."""
    seconds = limit_of(item)
    if not seconds:
        yield
        return
    timer = threading.Timer(seconds, _end_process, (item, seconds))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def limit_of(item: pytest.Item) -> float:
    """Return how many seconds a test may take in all; 0 where it has no limit."""
    marker = item.get_closest_marker("timeout")
    limit = marker.args[0] if marker is not None and marker.args else item.config.getini("timeout")
    return float(limit) + GRACE_S if float(limit or 0) > 0 else 0.0


def _end_process(item: pytest.Item, seconds: float) -> None:
    # What is written to the standard error of a test is captured, and lost with the process.
    item.config.pluginmanager.getplugin("capturemanager").suspend_global_capture()
    os.write(2, f"\n{item.nodeid} did not end within {seconds:.0f} s:\n".encode())
    faulthandler.dump_traceback(file=2, all_threads=True)
    os._exit(STATUS)
