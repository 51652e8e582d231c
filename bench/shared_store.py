"""What a store that several machines reach costs a run: plans, the list of runs, and locks, on each store.

The floor of a plan is the same plan on the embedded store; of the list of runs the start of the program; of a
cycle of locks what the store itself needs for three durable writes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import orjson
import psycopg
import yaml
from tests.support.postgres import PASSWORD, Postgres, new_schema, start_postgres
from tests.support.seaweed import ACCESS_KEY, BUCKET, SECRET_KEY, start_seaweed

from bench.figure import Figure
from bench.site_on_lab import site_on_lab
from stackyard.clients.objects import ANYTHING, Objects, open_objects
from stackyard.state import Actor, LockInfo, StateService, make_lock_info
from stackyard.state.run_records import Outcome, RecordedRun, RunRecords

__all__ = ["measure"]

GUESTS = 10
ROUNDS = 5
RECORDS = 10_000
CYCLES = 100
ENV = "bench"
ME = Actor(principal="bench")


def measure() -> Iterator[Figure]:
    """Yield the figures of each store."""
    os.environ |= {
        "PGPASSWORD": PASSWORD,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name, contextlib.ExitStack() as stack:
        server = stack.enter_context(start_postgres())
        bucket = start_seaweed(Path(name) / "bucket")
        stack.callback(bucket.kill)
        address = {
            "PostgreSQL": server.address(new_schema()),
            "S3": f"s3://{BUCKET}/{uuid.uuid4().hex}?endpoint={bucket.endpoint}",
        }
        yield from _plans(address)
        yield from _lists(address, Path(name) / "list")
        yield from _cycles(address, server, Path(name))


# --- A plan of ten guests


def _plans(address: Mapping[str, str]) -> Iterator[Figure]:
    with site_on_lab(f"bench-shared-{os.getpid()}") as (folder, _):
        guests = [
            {"name": f"vm{n}", "vmid": 1000 + n, "cores": 1, "memory": 64, "disks": [{"size_gib": 1}]}
            for n in range(GUESTS)
        ]
        document = {"node": "lab", "posture": "local", "vms": guests}
        (folder / "envs" / f"{ENV}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        stores = {"": {}, **{kind: {"STACKYARD_STORE": where} for kind, where in address.items()}}
        took_s: dict[str, float] = {}
        for _ in range(ROUNDS + 1):
            for kind, env in stores.items():
                # Each store has the folder to itself: another one with states in it would be refused.
                base, own = folder / ".stackyard", folder / f".stackyard-{kind or 'embedded'}"
                if own.exists():
                    own.rename(base)
                once_s = _program_s(("plan", ENV), folder, env)
                base.rename(own)
                took_s[kind] = min(took_s.get(kind, 9e9), once_s)
    for kind in address:
        yield Figure(
            name=f"a plan of {GUESTS} guests ({kind})",
            measured_s=took_s[kind],
            floor_name="the same on the embedded store",
            floor_s=took_s[""],
            aim_ratio=1.0,
            allowance_s=0.3,
        )


def _program_s(arguments: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> float:
    began_s = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "stackyard", *arguments],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - began_s


# --- The list of runs


def _lists(address: Mapping[str, str], folder: Path) -> Iterator[Figure]:
    folder.mkdir()
    (folder / "site.yaml").write_text("defaults: {}\n")
    floor_s = min(_program_s(("--version",), folder, {}) for _ in range(ROUNDS))
    embedded = folder / ".stackyard" / "state"
    stores: dict[str, Path | str] = {"SQLite": embedded, **address}
    for kind, where in stores.items():
        with contextlib.closing(open_objects(where)) as objects:
            _fill(objects)
        env = {} if kind == "SQLite" else {"STACKYARD_STORE": str(where)}
        command = ("runs", "list", "--json")
        yield Figure(
            name=f"runs list of {RECORDS} records ({kind})",
            measured_s=min(_program_s(command, folder, env) for _ in range(ROUNDS)),
            floor_name="--version",
            floor_s=floor_s,
            aim_ratio=1.0,
            allowance_s=0.3,
        )
        # Otherwise the next store would be refused, as long as this one holds states.
        (folder / ".stackyard").rename(folder / f"used-{kind}")


def _fill(objects: Objects) -> None:
    records, began_at = RunRecords(objects), time.time()
    for number in range(RECORDS):
        run = RecordedRun(
            id=uuid.uuid4().hex[:12],
            verb="plan",
            target="env:dev",
            state="env/dev/pve1",
            by="bench",
            machine="bench",
            version="0",
            started_at=began_at - number,
            finished_at=began_at - number + 0.5,
            outcome=Outcome.DONE,
        )
        records.write(run)


# --- Locks


def _cycles(address: Mapping[str, str], server: Postgres, folder: Path) -> Iterator[Figure]:
    with contextlib.closing(open_objects(folder / "locks")) as objects:
        yield _cycle_figure("SQLite", objects, "three durable writes", _writes_s(objects))
    with contextlib.closing(open_objects(address["S3"])) as objects:
        yield _cycle_figure("S3", objects, "four conditional puts", 4 / 3 * _writes_s(objects))
    with contextlib.closing(open_objects(address["PostgreSQL"])) as objects:
        yield _cycle_figure("PostgreSQL", objects, "three committed inserts", 3 * _insert_s(server))


def _cycle_figure(kind: str, objects: Objects, floor_name: str, floor_s: float) -> Figure:
    service, name = StateService(objects), f"env/{kind.lower()}/bench"

    def cycle(number: int) -> None:
        lock_id = str(uuid.uuid4())
        service.locks.lock(name, make_lock_info(LockInfo(id=lock_id, operation="apply", who="bench")), ME)
        state = {"version": 4, "serial": number + 1, "lineage": "bench", "outputs": {}, "resources": []}
        service.contents.write(name, orjson.dumps(state), ME, lock_id=lock_id)
        service.locks.unlock(name, lock_id, ME)

    measured_s = _each_s(cycle)
    return Figure(
        name=f"lock, write, unlock ({kind})",
        measured_s=measured_s,
        floor_name=floor_name,
        floor_s=floor_s,
        # A put to PostgreSQL also records its number and wakes those who watch; each step reads first.
        aim_ratio=6.0 if kind == "PostgreSQL" else 3.0,
        note=f"{1 / measured_s:.0f} a second",
    )


def _writes_s(objects: Objects) -> float:
    """Return how long three writes of the store itself take, one after the other."""
    return 3 * _each_s(lambda number: objects.put(f"floor/{number}", b"x" * 500, expect=ANYTHING))


def _insert_s(server: Postgres) -> float:
    with contextlib.closing(server.connect()) as connection:
        connection.execute("create table floor (number int primary key, data bytea)")

        def insert(number: int) -> psycopg.Cursor[tuple[object, ...]]:
            return connection.execute("insert into floor values (%s, %s)", (number, b"x" * 500))

        return _each_s(insert)


def _each_s(action: Callable[[int], object]) -> float:
    began_s = time.perf_counter()
    for number in range(CYCLES):
        action(number)
    return (time.perf_counter() - began_s) / CYCLES
