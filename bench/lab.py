"""What the lab costs beside a bare aiohttp route over TLS: calls, whole cycles, its start, its memory.

Both servers run in processes of their own and are asked by the same cheap clients, in turn, so that a busy
moment of the machine hits both. The bare route answers as many bytes as the lab does.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.clients import Address, Rate, ask, hammer, repeat
from bench.figure import Figure, MemoryFigure
from stackyard import lab

__all__ = ["environment", "measure", "started"]

GUESTS = 10_000
ROUNDS = 5
SECONDS = 1.0
FLOOR = "a bare aiohttp route over TLS"
NODES = ("pve1", "pve2")

_SETTINGS = {"name": "web", "scsi0": "local-lvm:0.01", "net0": "virtio,bridge=vmbr0"}
_BARE = [sys.executable, "-m", "bench.bare_server"]
_LAB = [
    *(sys.executable, "-m", "stackyard", "lab", "up", "--foreground", "--json", "--port", "0"),
    *("--name", f"bench-{os.getpid()}"),
]
_BIG = [*_LAB, "--seed", "big"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A server that runs: where it is, and its process."""

    address: Address
    pid: int

    @property
    def memory_bytes(self) -> int:
        """What of it is in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def measure() -> list[Figure | MemoryFigure]:
    """Return everything that is promised of the lab."""
    figures: list[Figure | MemoryFigure] = []
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as folder, _bare() as bare:
        figures.append(_start(_lab_command(Path(folder) / "start"), "lab up to ready", aim_ratio=2.5))
        figures.append(_start(_BIG, "lab up --seed big (10,000 guests) to ready", aim_ratio=10.0))
        with _running(_BIG) as big:
            figures.append(_memory("a lab with the seed big", big, bare, aim_ratio=6.0))
        with _running(_lab_command(Path(folder) / "empty")) as empty:
            figures.append(_memory("an empty lab", empty, bare, aim_ratio=3.0))
            figures += [_cycles(empty, bare, clients=clients) for clients in (1, 32)]
        data = Path(folder) / "large"
        _fill(data)
        with _running(_lab_command(data)) as large:
            figures += _reads(large, bare)
            figures.append(_memory(f"a lab with {GUESTS:,} guests", large, bare, aim_ratio=6.0))
    return figures


# --- Servers


@contextlib.contextmanager
def _bare() -> Iterator[_Server]:
    with started(_BARE) as (process, line):
        yield _Server(address=Address(port=int(line)), pid=process.pid)


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[_Server]:
    with started(command) as (process, line):
        ready = json.loads(line)
        headers = f"Authorization: PVEAPIToken={ready['api_token']}\r\n"
        port = int(ready["url"].rpartition(":")[2])
        yield _Server(address=Address(port=port, headers=headers), pid=process.pid)


def _lab_command(data: Path) -> list[str]:
    return [*_LAB, "--data", str(data), "--nodes", ",".join(NODES)]


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    """Run a server and give its ready line."""
    process = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        yield process, _ready_line(process.stdout)
    finally:
        process.kill()
        process.communicate()


def environment() -> dict[str, str]:
    """Return an environment in which Python keeps what it compiled, as it does for users."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"stackyard-bench-{os.getuid()}"),
    }


def _ready_line(stream: IO[bytes] | None) -> bytes:
    line = stream.readline() if stream is not None else b""
    if not line:
        raise RuntimeError("a server ended before it was ready")
    return line


def _fill(data: Path) -> None:
    """Make a data folder with many guests, half of them running."""

    async def main() -> None:
        async with lab.start(data=data, nodes=NODES) as running:
            world = running.world
            with world.store.transaction():
                for vmid in range(100, 100 + GUESTS):
                    config = {
                        "name": f"vm{vmid}",
                        "memory": "2048",
                        "cores": 2,
                        "ostype": "l26",
                        "scsihw": "virtio-scsi-single",
                        "scsi0": f"local-lvm:vm-{vmid}-disk-0,size=8G",
                        "net0": f"virtio=BC:24:11:00:{vmid // 256 % 256:02X}:{vmid % 256:02X},bridge=vmbr0",
                        "boot": "order=scsi0;net0",
                        "tags": "bench;web",
                    }
                    world.guests.create("qemu", NODES[vmid % 2], vmid, config)
                    guest = world.guests.get(vmid)
                    if guest is not None and vmid % 2:
                        world.guests.update(guest, status="running", started=int(world.clock.now()))

    asyncio.run(main())


# --- Figures


def _start(command: list[str], name: str, *, aim_ratio: float) -> Figure:
    """Time the way from a command to the first answer, on a data folder that is not new."""
    # The first start fills the folder, and the cache of compiled code.
    _time_to_ready_s(command)
    floor_s = ours_s = float("inf")
    for _ in range(ROUNDS):
        floor_s = min(floor_s, _time_to_ready_s(_BARE))
        ours_s = min(ours_s, _time_to_ready_s(command))
    return Figure(
        name=name,
        measured_s=ours_s,
        floor_name=FLOOR,
        floor_s=floor_s,
        aim_ratio=aim_ratio,
    )


def _time_to_ready_s(command: list[str]) -> float:
    began_s = time.perf_counter()
    with started(command):
        return time.perf_counter() - began_s


def _reads(large: _Server, bare: _Server) -> list[Figure | MemoryFigure]:
    """Time reads in a large lab: one guest's configuration, and the list of everything."""
    figures: list[Figure | MemoryFigure] = []
    for name, path, clients, aim_ratio in (
        ("config read", "/nodes/pve1/qemu/100/config", 32, 3.0),
        (f"cluster/resources with {GUESTS:,} guests", "/cluster/resources", 4, 3.0),
    ):
        request = large.address.request("GET", f"/api2/json{path}")
        size = len(ask(large.address, request))
        floor_request = bare.address.request("GET", f"/{size}")
        ours, floor = _in_turn(
            lambda request=request, clients=clients: hammer(  # type: ignore[misc]
                large.address, request, clients=clients, seconds=SECONDS
            ),
            lambda request=floor_request, clients=clients: hammer(  # type: ignore[misc]
                bare.address, request, clients=clients, seconds=SECONDS
            ),
        )
        note = f"{ours.per_second:,.0f} a second, {size:,} bytes, {clients} clients"
        figures += [
            Figure(
                name=name,
                measured_s=ours.each_s,
                floor_name=FLOOR,
                floor_s=floor.each_s,
                aim_ratio=aim_ratio,
                note=note,
            ),
            Figure(
                name=f"{name}, p99",
                measured_s=ours.p99_s,
                floor_name=FLOOR,
                floor_s=floor.p99_s,
                aim_ratio=aim_ratio,
                allowance_s=0.02,
            ),
        ]
    return figures


def _cycles(server: _Server, bare: _Server, *, clients: int) -> Figure:
    """Time the making of a VM until it runs: as many requests as a client needs for it, five."""
    numbers = itertools.count(1000 * clients)
    request, bare_request = server.address.request, bare.address.request

    def ours() -> Generator[bytes, bytes, None]:
        vmid, path = next(numbers), "/api2/json/nodes/pve1"
        upid = json.loads((yield request("POST", f"{path}/qemu", vmid=vmid, **_SETTINGS)))["data"]
        yield request("GET", f"{path}/tasks/{upid}/status")
        upid = json.loads((yield request("POST", f"{path}/qemu/{vmid}/status/start")))["data"]
        yield request("GET", f"{path}/tasks/{upid}/status")
        state = yield request("GET", f"{path}/qemu/{vmid}/status/current")
        if json.loads(state)["data"]["status"] != "running":
            raise RuntimeError(f"{vmid} does not run: {state!r}")

    def floor() -> Generator[bytes, bytes, None]:
        yield bare_request("POST", "/80", vmid=100, **_SETTINGS)
        yield bare_request("GET", "/250")
        yield bare_request("POST", "/80")
        yield bare_request("GET", "/250")
        yield bare_request("GET", "/500")

    found, least = _in_turn(
        lambda: repeat(server.address, ours, clients=clients, seconds=SECONDS),
        lambda: repeat(bare.address, floor, clients=clients, seconds=SECONDS),
    )
    return Figure(
        name=f"create to running, {clients} client{'s' if clients > 1 else ''}",
        measured_s=found.each_s,
        floor_name=f"five requests to {FLOOR}",
        floor_s=least.each_s,
        aim_ratio=8.0,
        note=f"{found.per_second:,.0f} a second, p99 {found.p99_s * 1000:.1f} ms",
    )


def _in_turn(ours: Callable[[], Rate], floor: Callable[[], Rate]) -> tuple[Rate, Rate]:
    """Measure both several times in turn and return the best of each."""
    found, least = [], []
    for _ in range(ROUNDS):
        least.append(floor())
        found.append(ours())
    return _best(found), _best(least)


def _best(rates: list[Rate]) -> Rate:
    return Rate(each_s=min(rate.each_s for rate in rates), p99_s=min(rate.p99_s for rate in rates))


def _memory(name: str, server: _Server, bare: _Server, *, aim_ratio: float) -> MemoryFigure:
    return MemoryFigure(
        name=f"memory of {name}",
        measured_bytes=server.memory_bytes,
        floor_name=FLOOR,
        floor_bytes=bare.memory_bytes,
        aim_ratio=aim_ratio,
    )
