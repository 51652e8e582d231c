"""Every kind of queue of the GitOps server, and a worker of its own process that can be killed.

Run as a program: `python -m tests.support.gitops_queues ADDRESS VERB`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.postgres import new_schema, require_postgres, use_password
from tests.support.seaweed import new_prefix, require_seaweed, use_credentials

from stackyard.clients.objects import MemoryObjects, Objects, open_objects
from stackyard.gitops.queue import JobQueue, NewJob
from stackyard.gitops.queue.stored import StoredQueue

__all__ = ["QueuePlace", "look", "queues", "shared_queues"]

REPOSITORY = "home/infra"
ROOT = Path(__file__).parents[2]


def look(number: int, *, lock: str = "", key: str | None = None) -> NewJob:
    """Return a job that looks at a pull request."""
    return NewJob(
        kind="look",
        lock=lock or f"pull-{number}",
        key=f"look-{number}" if key is None else key,
        args={"number": number},
    )


@dataclass
class QueuePlace:
    """Where a queue is; it is opened once for each process that a test plays.

    Attributes:
        kind: Which kind of store has it.
        address: What another process opens; empty where none can.
        is_shared: Whether several workers can take jobs at the same time.
    """

    kind: str
    open: Callable[[], JobQueue]
    address: str = ""
    is_shared: bool = False

    @contextlib.contextmanager
    def process(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a worker of its own process."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gitops_queues", self.address, *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@dataclass
class _Stores:
    opened: list[Objects] = field(default_factory=list)

    def open(self, address: str) -> Objects:
        self.opened.append(open_objects(address if "://" in address else Path(address)))
        return self.opened[-1]


def open_at(address: str, stores: _Stores) -> JobQueue:
    """Open a queue with short times."""
    if not address.startswith("postgresql://"):
        return StoredQueue(stores.open(address), REPOSITORY, promise_s=3.0, look_every_s=0.1)
    from stackyard.clients.objects.postgres import PostgresAddress
    from stackyard.gitops.queue.postgres import PostgresQueue

    return PostgresQueue(PostgresAddress.parse(address), REPOSITORY, beat_every_s=0.3, silent_s=1.5)


def make_place(kind: str, folder: Path, stores: _Stores) -> QueuePlace:
    if kind == "memory":
        memory = MemoryObjects()
        return QueuePlace(kind, lambda: StoredQueue(memory, REPOSITORY, promise_s=3.0, look_every_s=0.1))
    if kind == "sqlite":
        address = str(folder / "store")
    elif kind == "s3":
        address = require_seaweed().address(new_prefix())
    else:
        address = require_postgres().address(new_schema())
        # The tables of the queue are in the schema of the store, which is opened first.
        stores.open(address)
    is_shared = kind == "postgresql"
    return QueuePlace(kind, lambda: open_at(address, stores), address=address, is_shared=is_shared)


def _places(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QueuePlace]:
    if request.param == "s3":
        use_credentials(monkeypatch)
    if request.param == "postgresql":
        use_password(monkeypatch)
    stores = _Stores()
    try:
        yield make_place(request.param, tmp_path, stores)
    finally:
        for objects in stores.opened:
            objects.close()


# The same queue as in the other stores, and the suite of stores says what S3 does.
S3 = pytest.param("s3", marks=pytest.mark.soak)
queues = pytest.fixture(params=["memory", "sqlite", S3, "postgresql"], name="queues")(_places)
shared_queues = pytest.fixture(params=["sqlite", "postgresql"], name="shared_queues")(_places)


async def _main(address: str, verb: str, *words: str) -> None:
    stores = _Stores()
    async with open_at(address, stores) as queue:
        if verb == "receive":
            number, delivery = words
            say(await queue.put(look(int(number)), delivery=delivery))
            os.kill(os.getpid(), signal.SIGKILL)
        elif verb == "take":
            job = await queue.take(30.0)
            say("nothing" if job is None else str(job.job.args["number"]))
            await asyncio.sleep(600)
        elif verb == "drain":
            # Both workers write into one file, each line at once.
            with Path(words[0]).open("ab", buffering=0) as log:
                while (job := await queue.take(2.0)) is not None:
                    log.write(b"begin %d\n" % job.job.args["number"])
                    await asyncio.sleep(0.002)
                    log.write(b"end %d\n" % job.job.args["number"])
                    await queue.done(job)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
