"""What the controller costs: clones beside `git clone file://`, specs beside a bare route, start and stop.

The controller runs in a process of its own, over TLS, as guests meet it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.controller import make_site
from tests.support.repositories import git, new_repository

from bench.clients import Address, hammer
from bench.figure import Figure

__all__ = ["measure"]

ROUNDS = 5
CLIENTS = 100
SECONDS = 3.0
FILES = 1000
TOKEN = "token-of-the-bench"  # noqa: S105 - opens nothing else
_BARE_ROUTE = "a bare aiohttp route over TLS"


def measure() -> Iterator[Figure]:
    """Yield everything that is promised of the controller."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name)
        site, source = make_site(folder), _repository(folder / "bootstrap")
        with _serving(site, "--repo-token", TOKEN) as server:
            yield _clone(server, source, folder)
            yield from _specs(server)
        yield from _start_and_stop(site)


def _repository(folder: Path) -> Path:
    """Make a repository of 2,000 objects: two commits, a thousand files, and what they change."""
    new_repository(folder)
    for number in range(FILES):
        path = folder / f"role{number % 20}" / f"file{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"name: file {number}\n" + "value: 1\n" * (number % 50))
    _commit(folder)
    for number in range(FILES):
        path = folder / f"role{number % 20}" / f"file{number}.yaml"
        path.write_text(path.read_text() + f"changed: {number}\n")
    _commit(folder)
    return folder


def _commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "work")


@dataclass(frozen=True, slots=True)
class _Server:
    """A controller that runs."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    began_s: float
    ready_s: float


@contextlib.contextmanager
def _serving(site: Path, *options: str) -> Iterator[_Server]:
    command = [
        sys.executable,
        "-m",
        "stackyard",
        "serve",
        "--json",
        "--site",
        str(site),
        "--bind",
        "127.0.0.1",
    ]
    began_s = time.perf_counter()
    process = subprocess.Popen([*command, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        ready = json.loads(process.stdout.readline())
        yield _Server(process, ready, began_s, time.perf_counter())
    finally:
        process.terminate()
        process.wait()


# --- Clones


def _clone(server: _Server, source: Path, folder: Path) -> Figure:
    over_https = [
        _cloned(server.ready["url"] + "/bootstrap.git", folder / f"https{n}") for n in range(ROUNDS)
    ]
    from_file = [_cloned(f"file://{source}", folder / f"file{n}") for n in range(ROUNDS)]
    objects = git(source, "count-objects", "-v").stdout.split("\n", 1)[0]
    return Figure(
        name=f"clone by smart HTTP ({objects})",
        measured_s=statistics.median(over_https),
        floor_name="git clone file://",
        floor_s=statistics.median(from_file),
        aim_ratio=2.0,
    )


def _cloned(url: str, place: Path) -> float:
    header = ("-c", f"http.extraHeader=Authorization: Bearer {TOKEN}", "-c", "http.sslVerify=false")
    began_s = time.perf_counter()
    subprocess.run(["git", *header, "clone", "--quiet", url, str(place)], check=True)
    return time.perf_counter() - began_s


# --- Specs


def _specs(server: _Server) -> Iterator[Figure]:
    address = Address(port=server.ready["port"], headers="Authorization: Bearer node-token-of-web1\r\n")
    with _bare_server() as bare:
        ours = hammer(address, address.request("GET", "/spec/web1"), clients=CLIENTS, seconds=SECONDS)
        floor = hammer(bare, bare.request("GET", "/1500"), clients=CLIENTS, seconds=SECONDS)
    yield Figure(
        name=f"fetch of a spec with a token, {CLIENTS} clients",
        measured_s=ours.each_s,
        floor_name=_BARE_ROUTE,
        floor_s=floor.each_s,
        aim_ratio=2.0,
        note=f"{ours.per_second:.0f} a second",
    )
    yield Figure(
        name="the slowest of a hundred of these",
        measured_s=ours.p99_s,
        floor_name=_BARE_ROUTE,
        floor_s=floor.p99_s,
        aim_ratio=2.0,
        allowance_s=0.02,
    )


@contextlib.contextmanager
def _bare_server() -> Iterator[Address]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.bare_server"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield Address(port=int(process.stdout.readline()))
        finally:
            process.kill()


# --- Start and stop


def _start_and_stop(site: Path) -> Iterator[Figure]:
    starts, stops, python = [], [], []
    for _ in range(ROUNDS):
        python.append(_python_s())
        with _serving(site) as server:
            starts.append(server.ready_s - server.began_s)
            clients = [_connect(server.ready["port"]) for _ in range(CLIENTS)]
            began_s = time.perf_counter()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait()
            stops.append(time.perf_counter() - began_s)
            for client in clients:
                client.close()
    floor_s = statistics.median(python)
    name = "a Python that imports the same libraries"
    yield Figure(
        name="start until ready",
        measured_s=statistics.median(starts),
        floor_name=name,
        floor_s=floor_s,
        aim_ratio=3.0,
        allowance_s=0.3,
    )
    yield Figure(
        name=f"stop with {CLIENTS} clients connected",
        measured_s=statistics.median(stops),
        floor_name="a second",
        floor_s=1.0,
        aim_ratio=2.0,
    )


def _python_s() -> float:
    code = "import aiohttp.web, cryptography.x509, pydantic, orjson, yaml, click, sqlite3"
    began_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
    return time.perf_counter() - began_s


def _connect(port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)))
