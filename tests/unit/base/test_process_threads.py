"""Programs are started while other threads are busy, whatever locks those hold."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import run_python

# Each thread has a connection of its own, and is inside SQLite most of the time. Python that runs between
# fork and exec drops what belongs to threads, and may collect garbage.
STARTS = """
import asyncio, gc, os, sqlite3, sys, threading

from stackyard.base import process
from stackyard.clients.objects.sqlite_threads import ThreadConnections


def connect():
    return sqlite3.connect(sys.argv[1], check_same_thread=False)


class Garbage:
    def __init__(self):
        self.itself = self

    def __del__(self):
        with lock:
            pass


lock = threading.Lock()
with connect() as first:
    first.execute("create table numbers (value)")
    first.executemany("insert into numbers values (?)", ((number,) for number in range(20000)))
connections = ThreadConnections(connect)


def read():
    while True:
        connections.get_connection().execute("select sum(value) from numbers").fetchall()


def hold():
    while True:
        with lock:
            sum(range(20000))


for work in (read, read, hold):
    threading.Thread(target=work, daemon=True).start()


async def main():
    for _ in range(60):
        # So near to a collection that one is due before the program begins.
        gc.set_threshold(20)
        [Garbage() for _ in range(8)]
        command = process.Command(argv=("true",), env=process.environment())
        assert (await process.run(command)).returncode == 0


asyncio.run(main())
print("started", flush=True)
os._exit(0)
"""


def test_a_program_starts_whatever_other_threads_hold(tmp_path: Path) -> None:
    assert run_python(STARTS, str(tmp_path / "numbers.db")) == "started\n"
