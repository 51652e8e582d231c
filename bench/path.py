"""What the path costs beside the engine alone, and beside bpg's provider: plan, apply, plan without changes.

Ours is the program, from its start to its end. The engine alone is run in a folder that was prepared the same
way, with the same provider and the same state service, which answer from this process. Both are asked in
turn, against a lab in a process of its own that is made new in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support.path import mirror_of

from bench.figure import Figure, MemoryFigure
from bench.lab import environment
from bench.site_on_lab import site_on_lab
from pvelab.faults.latency import Latency, Speed, Work
from stackyard.base.errors import StackyardError
from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Flavour
from stackyard.path.environment import EnvironmentSource
from stackyard.path.run import RunSettings, open_run
from stackyard.sources.store import ChosenStore

__all__ = ["BPG_VARIABLE", "find_tofu", "measure"]

# How many guests, and how many rounds.
SIZES = {10: 3, 100: 2}
LARGE = (1000, 1)
LARGE_VARIABLE = "STACKYARD_BENCH_LARGE"
BPG_VARIABLE = "STACKYARD_TEST_BPG"
BPG_SIZE = 100
REAL_GUESTS = 4
STEPS = ("plan", "apply", "plan without changes")
AIM_RATIO, ALLOWANCE_S = 1.1, 0.3

_NAME = "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What one step took."""

    took_s: float
    memory_bytes: int

    def best(self, other: _Cost | None) -> _Cost:
        if other is None:
            return self
        return _Cost(
            took_s=min(self.took_s, other.took_s), memory_bytes=min(self.memory_bytes, other.memory_bytes)
        )


_Costs = dict[str, _Cost]


def measure() -> Iterator[Figure | MemoryFigure]:
    """Return everything that is promised of the path; nothing without an OpenTofu."""
    engine = find_tofu()
    if isinstance(engine, str):
        sys.stdout.write(f"  path: skipped, {engine}\n")
        return
    sizes = {**SIZES, **(dict([LARGE]) if os.environ.get(LARGE_VARIABLE) else {})}
    ours: dict[int, _Costs] = {}
    for size, rounds in sizes.items():
        with _yard() as yard:
            yard.write(_plain(size))
            ours[size], alone = _compared(yard, rounds)
            yield from _figures(size, ours[size], alone)
            if size == BPG_SIZE and os.environ.get(BPG_VARIABLE):
                yield from _beside_bpg(yard, engine, ours[size])
    if LARGE[0] in ours:
        yield from _growth(ours[100], ours[LARGE[0]])
    yield _real()


def find_tofu() -> Path | str:
    """Return the OpenTofu to measure with, or why there is none."""
    try:
        found = asyncio.run(find_engine()).engine
    except StackyardError as err:
        return err.detail
    return found.path if found.flavour is Flavour.TOFU else f"only {found} was found"


# --- A site and its lab


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yard:
    """A site, and the lab that it is for."""

    folder: Path
    ready: Mapping[str, Any]

    def write(self, guests: list[dict[str, Any]]) -> None:
        document = {"node": "lab", "posture": "local", "vms": guests}
        (self.folder / "envs" / f"{_NAME}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    def begin(self, base: Path) -> None:
        """Make the lab and the state new; the folder in which the engine works stays prepared."""
        _lab("reset", "--name", str(self.ready["name"]))
        for name in ("state", "journal"):
            shutil.rmtree(base / name, ignore_errors=True)


@contextlib.contextmanager
def _yard(*options: str) -> Iterator[_Yard]:
    with site_on_lab(f"bench-path-{os.getpid()}", *options) as (folder, ready):
        yield _Yard(folder=folder, ready=ready)


def _lab(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "stackyard", "lab", *arguments],
        env=environment(),
        capture_output=True,
        check=True,
    )


def _plain(size: int) -> list[dict[str, Any]]:
    """Return guests that ask for little of the lab, so that the path is what takes the time."""
    return [
        {"name": f"vm{n}", "vmid": 1000 + n, "cores": 1, "memory": 64, "disks": [{"size_gib": 1}]}
        for n in range(size)
    ]


# --- Ours and the engine alone


def _compared(yard: _Yard, rounds: int) -> tuple[_Costs, _Costs]:
    best: list[_Costs] = [{}, {}]
    # The first run prepares the folder of the engine, and the cache of compiled code.
    _program(yard, "plan")
    for _ in range(rounds):
        for index, costs in enumerate((_ours(yard), asyncio.run(_alone(yard)))):
            best[index] = {step: cost.best(best[index].get(step)) for step, cost in costs.items()}
    return best[0], best[1]


def _ours(yard: _Yard, **env: str) -> _Costs:
    yard.begin(yard.folder / ".stackyard")
    planned = _program(yard, "plan", **env)
    applied = _program(yard, "apply", "--no-verify", **env)
    return dict(zip(STEPS, (planned, applied, _program(yard, "plan", **env)), strict=True))


def _program(yard: _Yard, verb: str, *options: str, **env: str) -> _Cost:
    command = [sys.executable, "-m", "stackyard", verb, _NAME, *options]
    return _timed(command, yard.folder, {**environment(), **env})


async def _alone(yard: _Yard) -> _Costs:
    base = yard.folder.parent / "alone"
    yard.begin(base)
    resolved = EnvironmentSource.find(str(yard.folder)).resolve(_NAME, None)
    async with open_run(resolved, RunSettings(store=ChosenStore(base=base))) as run:
        workdir, plan = run.workdir, str(yard.folder.parent / "plan")

        async def engine(*arguments: str) -> _Cost:
            command = [str(workdir.engine.path), *arguments]
            return await asyncio.to_thread(_timed, command, workdir.folder, workdir.env())

        planned = await engine("plan", "-input=false", f"-out={plan}")
        applied = await engine("apply", "-input=false", plan)
        again = await engine("plan", "-input=false", f"-out={plan}")
    both = _Cost(
        took_s=planned.took_s + applied.took_s, memory_bytes=max(planned.memory_bytes, applied.memory_bytes)
    )
    return dict(zip(STEPS, (planned, both, again), strict=True))


def _timed(command: list[str], folder: Path, env: Mapping[str, str]) -> _Cost:
    """Run a program; its memory is the most that it or a program of its own had."""
    began_s = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.perf_counter() - began_s
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{command} ended with {process.returncode}: {said.read().decode()[-2000:]}")
    return _Cost(took_s=took_s, memory_bytes=usage.ru_maxrss * 1024)


# --- Figures


def _figures(size: int, ours: _Costs, alone: _Costs) -> Iterator[Figure | MemoryFigure]:
    for step in STEPS:
        yield Figure(
            name=f"{step}, {size} guests",
            measured_s=ours[step].took_s,
            floor_name="tofu alone",
            floor_s=alone[step].took_s,
            aim_ratio=AIM_RATIO,
            allowance_s=ALLOWANCE_S,
        )
    yield MemoryFigure(
        name=f"memory of apply, {size} guests",
        measured_bytes=ours["apply"].memory_bytes,
        floor_name="tofu alone",
        floor_bytes=alone["apply"].memory_bytes,
        aim_ratio=AIM_RATIO,
    )


def _growth(small: _Costs, large: _Costs) -> Iterator[Figure]:
    for step in STEPS:
        yield Figure(
            name=f"{step}, from 100 to {LARGE[0]} guests",
            measured_s=large[step].took_s,
            floor_name="100 guests",
            floor_s=small[step].took_s,
            aim_ratio=LARGE[0] / 100,
        )


def _beside_bpg(yard: _Yard, engine: Path, ours: _Costs) -> Iterator[Figure]:
    binary = Path(os.environ[BPG_VARIABLE]).absolute()
    settings = mirror_of(binary, engine, yard.folder.parent / "bpg")
    env = {"STACKYARD_PROVIDER": "bpg", "STACKYARD_TOFU_CONFIG": str(settings)}
    _program(yard, "plan", **env)
    theirs = _ours(yard, **env)
    for step in STEPS:
        yield Figure(
            name=f"{step}, {BPG_SIZE} guests, built-in provider",
            measured_s=ours[step].took_s,
            floor_name="bpg/proxmox",
            floor_s=theirs[step].took_s,
            aim_ratio=1 / 3,
        )


def _real() -> Figure:
    """Time an apply in a lab that takes as long as hardware, against the longest chain of waits in it."""
    # The disks of a datastore are allocated one after the other, two for each guest.
    allocations = (Work.ALLOCATE,) * (2 * REAL_GUESTS)
    chain = (Work.DOWNLOAD, Work.CREATE, *allocations, Work.RESIZE, Work.START, Work.BOOT)
    latency = Latency(speed=Speed.REAL)
    with _yard("--speed", "real") as yard:
        yard.write(
            [
                {"name": f"vm{n}", "vmid": 1000 + n, "preset": "vm-xsmall", "image": "debian-12"}
                for n in range(REAL_GUESTS)
            ]
        )
        _program(yard, "plan")
        applied = _program(yard, "apply")
    return Figure(
        name=f"apply of {REAL_GUESTS} guests at the speed of hardware",
        measured_s=applied.took_s,
        floor_name="download, create, allocations, resize, start and boot",
        floor_s=sum(latency.seconds(work) for work in chain),
        aim_ratio=1.2,
    )
