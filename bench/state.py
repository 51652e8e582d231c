"""What the state service costs beside what it cannot do without: durable inserts, and puts to the bucket.

A cycle is what an engine does around each apply: LOCK, POST, UNLOCK. Each client has a state of its own, as
engines have; the service runs in a process of its own, over TLS.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, start_seaweed

from bench.clients import Address, Rate, ask, repeat
from bench.figure import Figure, MemoryFigure
from stackyard.clients.objects import ANYTHING, Objects, open_objects
from stackyard.state import (
    Access,
    Actor,
    LockInfo,
    Policy,
    Right,
    StateService,
    codec,
    layout,
    ledger,
    make_lock_info,
)

__all__ = ["measure"]

CLIENTS = (1, 10, 100)
ROUNDS = 3
SECONDS = 2.0
LARGE_BYTES = 20_000_000
VERSIONS = 100_000
LINEAGE = str(uuid.uuid4())
ME = Actor(principal="bench")

_INSERTS = "three fsync'd SQLite inserts"
_PUTS = "four bare S3 puts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A service that runs: where it is, its process, and what each client logs in with."""

    address: Address
    pid: int
    logins: tuple[str, ...]

    @property
    def memory_bytes(self) -> int:
        """What of it is in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def request(self, method: str, path: str, body: bytes = b"", *, client: int | None = None) -> bytes:
        """Return a request as bytes, of one of the clients or of the administrator."""
        login = self.address.headers if client is None else self.logins[client]
        head = f"{method} /states/{path} HTTP/1.1\r\nHost: x\r\n{login}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def measure() -> Iterator[Figure | MemoryFigure]:
    """Yield everything that is promised of the state service."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name)
        with _serving("--data", str(folder / "data")) as server:
            empty_bytes = server.memory_bytes
            for clients in CLIENTS:
                floor = functools.partial(_insert_cycles, folder, clients)
                yield from _cycles("SQLite", server, floor, _INSERTS, clients=clients)
            yield from _large(server, folder)
            yield _memory(server, empty_bytes)
        yield from _many_versions(folder / "many")
        yield from _over_s3(folder)


# --- The service


@contextlib.contextmanager
def _serving(*where: str) -> Iterator[_Server]:
    command = [sys.executable, "-m", "stackyard", "state", "serve", "--json", "--port", "0", *where]
    with _started(command) as (process, line):
        ready = json.loads(line)
        login = base64.b64encode(f"{ready['username']}:{ready['password']}".encode()).decode()
        port = int(ready["url"].rpartition(":")[2])
        address = Address(port=port, headers=f"Authorization: Basic {login}\r\n")
        yield _Server(address=address, pid=process.pid, logins=_add_clients(where[1]))


def _add_clients(store: str) -> tuple[str, ...]:
    """Add a principal for each client; return what they log in with."""
    access = [Access(rights=(Right.READ, Right.WRITE, Right.LOCK))]
    with contextlib.closing(open_objects(store)) as objects:
        principals = StateService(objects).principals
        tokens = [principals.add(f"client-{number}", access, ME)[1] for number in range(max(CLIENTS))]
    return tuple(f"Authorization: Bearer {token}\r\n" for token in tokens)


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    """Run a server and give its ready line."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            raise RuntimeError("a server ended before it was ready")
        yield process, line
    finally:
        process.kill()
        process.communicate()


def _state(serial: int, *, bytes_wanted: int = 0, seed: int = 0) -> bytes:
    """Return a state; a large one looks like a real one: names that repeat, values that do not."""
    chance = random.Random(seed)  # noqa: S311 - only to be the same each time
    rows: list[dict[str, Any]] = []
    size = 0
    while size < bytes_wanted or not rows:
        attributes = {
            "id": chance.randbytes(16).hex(),
            "name": f"vm{len(rows)}",
            "tags": ["web", "prod"],
            "memory": 2048,
        }
        rows.append(
            {
                "mode": "managed",
                "type": "vm",
                "name": f"r{len(rows)}",
                "instances": [{"attributes": attributes}],
            }
        )
        size += 190
    document = {"version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": LINEAGE}
    return json.dumps({**document, "outputs": {}, "resources": rows, "check_results": None}).encode()


def _lock() -> tuple[str, bytes]:
    lock_id = str(uuid.uuid4())
    info = make_lock_info(
        LockInfo(id=lock_id, operation="OperationTypeApply", who="me@here", version="1.12.6")
    )
    return lock_id, info.body()


# --- Cycles


def _cycles(
    store: str, server: _Server, floor: Callable[[], Rate], floor_name: str, *, clients: int
) -> Iterator[Figure]:
    """Time LOCK, POST, UNLOCK."""
    names = itertools.cycle([f"{store}/{clients}/{number}" for number in range(clients)])
    serials: dict[str, int] = {}

    def work() -> Callable[[], Generator[bytes, bytes, None]]:
        def one() -> Generator[bytes, bytes, None]:
            # Each client begins with the next name, and keeps it for the length of a cycle.
            name = free.pop()
            serial = serials[name] = serials.get(name, 0) + 1
            lock_id, lock = _lock()
            # A client has a login of its own: the service limits the requests of each.
            client = int(name.rpartition("/")[2])
            yield server.request("LOCK", name, lock, client=client)
            yield server.request("POST", f"{name}?ID={lock_id}", _state(serial), client=client)
            yield server.request("UNLOCK", name, lock, client=client)
            free.append(name)

        return one

    free = [next(names) for _ in range(clients)]
    found: list[Rate] = []
    least: list[Rate] = []
    for _ in range(ROUNDS):
        least.append(floor())
        found.append(repeat(server.address, work(), clients=clients, seconds=SECONDS))
    best = min(found, key=lambda rate: rate.each_s)
    name = f"lock-write-unlock on {store}, {clients} client{'s' if clients > 1 else ''}"
    yield Figure(
        name=name,
        measured_s=best.each_s,
        floor_name=floor_name,
        floor_s=min(rate.each_s for rate in least),
        aim_ratio=6.0,
        note=f"{best.per_second:,.0f} a second",
    )
    yield Figure(
        name=f"{name}, p99",
        measured_s=min(rate.p99_s for rate in found),
        floor_name=f"the p99 of {floor_name} with as many clients",
        floor_s=min(rate.p99_s for rate in least),
        aim_ratio=6.0,
        allowance_s=0.1,
    )


def _rate(took_s: list[float], elapsed_s: float) -> Rate:
    ordered = sorted(took_s)
    return Rate(each_s=elapsed_s / len(ordered), p99_s=ordered[int(len(ordered) * 0.99)])


def _insert_cycles(folder: Path, clients: int) -> Rate:
    """Time three durable inserts, over and over again; with more clients each waits for the others."""
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS kept (data BLOB)")
    data, took_s = os.urandom(2000), []
    began_s = time.perf_counter()
    for _ in range(200):
        one_s = time.perf_counter()
        for _ in range(3):
            connection.execute("INSERT INTO kept VALUES (?)", (data,))
        took_s.append(time.perf_counter() - one_s)
    rate = _rate(took_s, time.perf_counter() - began_s)
    connection.close()
    return Rate(each_s=rate.each_s, p99_s=max(rate.p99_s, rate.each_s * clients))


# --- Large states, memory, many versions


def _large(server: _Server, folder: Path) -> Iterator[Figure]:
    """Time a state of 20 MB, there and back, beside the same bytes over a bare route and into a file."""
    times: dict[str, list[float]] = {"write": [], "read": [], "file": [], "route": []}
    path, size = folder / "large", 0
    with _started([sys.executable, "-m", "bench.bare_server"]) as (_, line):
        bare = Address(port=int(line))
        for serial in range(1, ROUNDS + 1):
            body = _state(serial, bytes_wanted=LARGE_BYTES, seed=serial)
            size = len(body)
            lock_id, lock = _lock()
            ask(server.address, server.request("LOCK", "large", lock))
            write = server.request("POST", f"large?ID={lock_id}", body)
            times["route"].append(_asked_s(bare, bare.request("GET", f"/{size}")))
            times["file"].append(_written_s(path, body))
            times["write"].append(_asked_s(server.address, write))
            times["read"].append(_asked_s(server.address, server.request("GET", "large")))
            ask(server.address, server.request("UNLOCK", "large", lock))
    least = {name: min(took_s) for name, took_s in times.items()}
    yield Figure(
        name=f"POST of {size / 1e6:.0f} MB",
        measured_s=least["write"],
        floor_name="the same bytes from a bare route and into a file, fsync'd",
        floor_s=least["route"] + least["file"],
        aim_ratio=8.0,
    )
    yield Figure(
        name=f"GET of {size / 1e6:.0f} MB",
        measured_s=least["read"],
        floor_name="the same bytes from a bare route",
        floor_s=least["route"],
        aim_ratio=4.0,
    )


def _asked_s(address: Address, request: bytes) -> float:
    return _timed(lambda: ask(address, request))


def _written_s(path: Path, body: bytes) -> float:
    return _timed(lambda: _write_durably(path, body))


def _timed(action: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    action()
    return time.perf_counter() - began_s


def _write_durably(path: Path, body: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(body)
        stream.flush()
        os.fsync(stream.fileno())


def _memory(server: _Server, empty_bytes: int) -> MemoryFigure:
    return MemoryFigure(
        name="memory after cycles of 100 clients and states of 20 MB",
        measured_bytes=server.memory_bytes,
        floor_name="the service when it was new",
        floor_bytes=empty_bytes,
        aim_ratio=8.0,
    )


def _many_versions(folder: Path) -> Iterator[Figure]:
    """Time a write, and the finding of the first version, with very many versions there."""
    objects = open_objects(folder)
    service = StateService(objects, Policy(unlocked_writes=True))
    few_s = min(_timed(lambda n=n: service.contents.write("few", _state(n), ME)) for n in range(1, 50))  # type: ignore[misc]
    _fill(service, objects)
    writes = [
        _timed(lambda n=n: service.contents.write("many", _state(n), ME))  # type: ignore[misc]
        for n in range(VERSIONS + 1, VERSIONS + 50)
    ]
    finds = [_timed(lambda: service.versions.get("many", 1)) for _ in range(20)]
    lists = [
        _timed(lambda: list(itertools.islice(service.versions.newest_first("many"), 20))) for _ in range(20)
    ]
    floor: dict[str, Any] = {"floor_name": "a write with under 50 versions", "floor_s": few_s}
    yield Figure(name=f"a write with {VERSIONS:,} versions", measured_s=min(writes), aim_ratio=2.0, **floor)
    yield Figure(
        name=f"finding the first of {VERSIONS:,} versions", measured_s=min(finds), aim_ratio=1.5, **floor
    )
    yield Figure(
        name=f"the newest 20 of {VERSIONS:,} versions", measured_s=min(lists), aim_ratio=1.5, **floor
    )
    objects.close()


def _fill(service: StateService, objects: Objects) -> None:
    """Give a state many versions, by the records that as many writes would have left."""
    first = service.contents.write("many", _state(1), ME)
    head = service.head("many")
    records = [dataclasses.replace(first, number=n, serial=n) for n in range(1, VERSIONS + 1)]
    sealed = 0
    segments: dict[str, bytes] = {}
    while len(records) - sealed * ledger.SEGMENT > ledger.SEGMENT:
        part = records[sealed * ledger.SEGMENT : (sealed + 1) * ledger.SEGMENT]
        segments[layout.version_segment("many", sealed)] = codec.dump_segment(part)
        sealed += 1
    tail = tuple(records[sealed * ledger.SEGMENT :])
    history = dataclasses.replace(head.history, tail=tail, sealed=sealed, count=VERSIONS)
    grown = dataclasses.replace(head, current=records[-1], top_serial=VERSIONS, history=history)
    objects.put(layout.head("many"), codec.dump_head(grown), expect=ANYTHING, before=segments)


# --- S3


def _over_s3(folder: Path) -> Iterator[Figure]:
    os.environ.update(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    weed = start_seaweed(folder / "seaweed")
    try:
        bare = open_objects(weed.address("floor"))
        with _serving("--store", weed.address("service")) as server:
            for clients in CLIENTS:
                floor = functools.partial(_put_cycles, bare, clients)
                yield from _cycles("S3", server, floor, _PUTS, clients=clients)
        bare.close()
    finally:
        weed.kill()


def _put_cycles(objects: Objects, clients: int) -> Rate:
    """Time four puts, over and over again, by as many clients at once."""
    data, took_s = os.urandom(2000), list[float]()

    def put(number: int) -> None:
        one_s = time.perf_counter()
        for step in range(4):
            objects.put(f"c{number}/{step}", data, expect=ANYTHING)
        took_s.append(time.perf_counter() - one_s)

    with ThreadPoolExecutor(clients) as threads:
        began_s = time.perf_counter()
        list(threads.map(put, range(40 + 2 * clients)))
        return _rate(took_s, time.perf_counter() - began_s)
