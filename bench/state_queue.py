"""How soon the next of fifty processes that wait for one lock has it, in PostgreSQL and in SQLite.

The floor is what the store itself needs for the same: a write, a watch that it wakes, a read and a write.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.postgres import PASSWORD, new_schema, start_postgres

from bench.figure import Figure
from stackyard.clients.objects import ANYTHING, Objects, acquire, open_objects, watch
from stackyard.state import Actor, StateService
from stackyard.state.run_lock import hold_state

__all__ = ["measure"]

WAITING = 50
HOLD_S = 0.2
ROUNDS = 30
NAME = "env/a"
ME = Actor(principal="bench")
HOLDER = b'{"ID": "holder", "Operation": "apply", "Who": "holder"}'
PATIENCE_S = 300.0

Open = Callable[[], Objects]


def measure() -> Iterator[Figure]:
    """Yield how soon the next has the lock, usually and at worst."""
    os.environ["PGPASSWORD"] = PASSWORD
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        server = stack.enter_context(start_postgres({"max_connections": "300"}))
        address = server.address(new_schema())
        stores: dict[str, Open] = {
            "PostgreSQL": lambda: open_objects(address),
            "SQLite": lambda: open_objects(folder / "store"),
        }
        for kind, open_store in stores.items():
            floor_s = _floor_s(open_store)
            waits = _waits(open_store, folder / kind)
            for what, measured_s, ratio in (
                ("usually", statistics.median(waits), 4.0),
                ("at worst", max(waits), 8.0),
            ):
                yield Figure(
                    name=f"the next of {WAITING} processes has the lock ({kind}, {what})",
                    measured_s=measured_s,
                    floor_name="a write, a watch, a read and a write",
                    floor_s=floor_s,
                    aim_ratio=ratio,
                    allowance_s=0.1,
                )


def _floor_s(open_store: Open) -> float:
    """Return how long a woken watch takes to read and write, at the median."""
    took_s: list[float] = []
    with contextlib.closing(open_store()) as one, contextlib.closing(open_store()) as two:
        for number in range(ROUNDS):
            ready, done = threading.Event(), threading.Event()

            def follow(ready: threading.Event = ready, done: threading.Event = done) -> None:
                with watch(two, "floor") as watching:
                    ready.set()
                    watching.wait(PATIENCE_S)
                    two.get("floor")
                    two.put("other", b"x", expect=ANYTHING)
                done.set()

            thread = threading.Thread(target=follow)
            thread.start()
            ready.wait()
            threading.Event().wait(0.02)
            began_s = time.perf_counter()
            one.put("floor", str(number).encode(), expect=ANYTHING)
            done.wait()
            took_s.append(time.perf_counter() - began_s)
            thread.join()
    return statistics.median(took_s)


def _waits(open_store: Open, times: Path) -> list[float]:
    """Return for each process how long after the release before it it had the lock."""
    with contextlib.closing(open_store()) as objects:
        service = StateService(objects)
        service.locks.lock(NAME, HOLDER, ME)
    children = [_fork(open_store, number, times) for number in range(WAITING)]
    with contextlib.closing(open_store()) as objects:
        service = StateService(objects)
        while len(service.head(NAME).waiting) < WAITING:
            threading.Event().wait(0.05)
        released_s = time.time()
        service.locks.unlock(NAME, "holder", ME)
        for child in children:
            os.waitpid(child, 0)
    waits: list[float] = []
    for line in times.read_text().splitlines():
        got, let_go = map(float, line.split())
        waits.append(got - released_s)
        released_s = let_go
    return waits


def _fork(open_store: Open, number: int, times: Path) -> int:
    child = os.fork()
    if not child:
        try:
            asyncio.run(_hold(open_store, number, times))
        finally:
            os._exit(0)
    return child


async def _hold(open_store: Open, number: int, times: Path) -> None:
    with contextlib.closing(open_store()) as objects:
        acquire(objects, f"runs/{number}", owner=f"run-{number}", promise_s=PATIENCE_S)
        holding = hold_state(
            StateService(objects),
            NAME,
            Actor(principal=f"run-{number}"),
            lease=f"runs/{number}",
            wait_s=PATIENCE_S,
            on_wait=lambda name, err: None,
        )
        async with holding:
            got_s = time.time()
            await asyncio.sleep(HOLD_S)
            with times.open("a") as file:
                file.write(f"{got_s} {time.time()}\n")
