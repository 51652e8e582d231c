"""What a store at a state service costs beside the store itself: reads and writes of one client, over TLS."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figure import Figure
from stackyard.clients.objects import ANYTHING, Objects, open_objects
from stackyard.clients.objects.http import TOKEN_VARIABLE

__all__ = ["measure"]

ROUNDS = 300
SMALL = os.urandom(4_000)

ACTIONS: dict[str, Callable[[Objects], object]] = {
    "a read": lambda objects: objects.get("x"),
    "a write": lambda objects: objects.put("x", SMALL, expect=ANYTHING),
}


def measure() -> Iterator[Figure]:
    """Yield the time of each call."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name, contextlib.ExitStack() as stack:
        bare = stack.enter_context(contextlib.closing(open_objects(Path(name) / "floor")))
        address = stack.enter_context(_served(Path(name) / "data"))
        objects = stack.enter_context(contextlib.closing(open_objects(address)))
        for what, action in ACTIONS.items():
            for store in (bare, objects):
                store.put("x", SMALL, expect=ANYTHING)
            yield Figure(
                name=f"{what} of 4 kB at a state service",
                measured_s=_median_s(action, objects),
                floor_name="the same in SQLite",
                floor_s=_median_s(action, bare),
                aim_ratio=2.0,
                allowance_s=0.003,
            )


@contextlib.contextmanager
def _served(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "stackyard", "state", "serve", "--json", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--data", str(data)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        line = process.stdout.readline() if process.stdout is not None else b""
        ready = json.loads(line)
        os.environ[TOKEN_VARIABLE] = ready["password"]
        yield f"{ready['url']}?fingerprint={ready['fingerprint']}"
    finally:
        process.kill()
        process.communicate()


def _median_s(action: Callable[[Objects], object], objects: Objects) -> float:
    took_s: list[float] = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        action(objects)
        took_s.append(time.perf_counter() - began_s)
    return statistics.median(took_s)
