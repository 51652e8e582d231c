"""What stackyard adds to the programs that it runs in stacks: a stub in 1,000 of them, and OpenTofu in 100.

The floor of each is a bare pool of threads that starts the same programs in the same folders, as many at a
time; it reads what they print, and nothing else. Stub and engine are started by both in turn.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figure import Figure
from bench.lab import environment
from stackyard.base.errors import StackyardError
from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Flavour

__all__ = ["measure"]

STUBS, STUB_JOBS, STUB_ROUNDS = 1000, 4, 3
PER_STACK_S = 0.002
# How many chains the stacks are in, each as long as there are stacks for it.
WIDTHS = (1, 10, 100)
CHAINED, WORK_S = 100, 0.05
REAL, REAL_JOBS, REAL_ROUNDS = 100, 4, 2
REAL_RATIO = 1.15
_BACKENDS = {"own local backend": "", "the store as backend": 'terraform {\n  backend "http" {}\n}\n'}


def measure() -> Iterator[Figure]:
    """Return what is promised of commands on many stacks; without an OpenTofu only the first part."""
    yield from _stubs()
    yield from _chains()
    try:
        engine = asyncio.run(find_engine(only=Flavour.TOFU)).engine.path
    except StackyardError as err:
        sys.stdout.write(f"  stacks: the rest is skipped, {err.detail}\n")
        return
    for name, backend in _BACKENDS.items():
        yield _planned(name, backend, engine)


# --- A stub


def _stubs() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folders = _write(Path(name), STUBS, STUBS)
        options = ("stack", "run", "--all", "--jobs", str(STUB_JOBS), "--", "true")
        _program(Path(name), *options)
        ours_s, floor_s = _compare(
            STUB_ROUNDS,
            lambda: _program(Path(name), *options),
            lambda: _pool(folders, STUB_JOBS, [["true"]]),
        )
    yield Figure(
        name=f"`stack run` of a stub in {STUBS} stacks, {STUB_JOBS} at a time",
        measured_s=ours_s,
        floor_name="a bare pool",
        floor_s=floor_s,
        aim_ratio=1.0,
        allowance_s=STUBS * PER_STACK_S,
        note=f"{(ours_s - floor_s) / STUBS * 1000:.2f} ms a stack above the pool",
    )


def _chains() -> Iterator[Figure]:
    """Time stacks that depend on each other, against the longest way through them."""
    for width in WIDTHS:
        with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
            _write(Path(name), CHAINED, width)
            options = ("stack", "run", "--all", "--jobs", str(width), "--", "sleep", str(WORK_S))
            _program(Path(name), *options)
            ours_s = min(_program(Path(name), *options) for _ in range(2))
        ideal_s = CHAINED / width * WORK_S
        yield Figure(
            name=f"`stack run` of {WORK_S * 1000:.0f} ms in {CHAINED} stacks, {width} chains",
            measured_s=ours_s,
            floor_name="the longest chain",
            floor_s=ideal_s,
            aim_ratio=1.0,
            # What the program takes to begin, and a start for each stack.
            allowance_s=0.5 + CHAINED * 2 * PER_STACK_S,
            note=f"{ideal_s / ours_s:.0%} of the time is work",
        )


# --- The engine


def _planned(name: str, backend: str, engine: Path) -> Figure:
    """Time the first plan of all stacks: nothing is prepared, as in a fresh checkout."""
    code = f'{backend}resource "terraform_data" "x" {{\n  input = "x"\n}}\n'

    def ours() -> float:
        with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as root:
            _write(Path(root), REAL, REAL, code)
            return _program(Path(root), "plan", "--all", "--jobs", str(REAL_JOBS))

    def bare() -> float:
        commands = [
            [str(engine), "init", "-input=false"],
            [str(engine), "plan", "-input=false", "-out=plan"],
        ]
        with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as root:
            # The engine alone has no server for its states; a file asks the least of it.
            folders = _write(Path(root), REAL, REAL, code.removeprefix(backend))
            return _pool(folders, REAL_JOBS, commands)

    ours_s, floor_s = _compare(REAL_ROUNDS, ours, bare)
    return Figure(
        name=f"first plan of {REAL} stacks, {name}, {REAL_JOBS} at a time",
        measured_s=ours_s,
        floor_name="a bare pool of `tofu init` and `tofu plan`",
        floor_s=floor_s,
        aim_ratio=REAL_RATIO,
        note=f"{ours_s / REAL * 1000:.0f} ms a stack",
    )


# --- Stacks, and programs in them


def _write(root: Path, count: int, width: int, code: str = "locals {}\n") -> list[Path]:
    """Write a repository of stacks in some chains, commit it, and return their folders."""
    folders = []
    for number in range(count):
        folder = root / "stacks" / f"g{number % 10}" / f"s{number}"
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(code)
        if number >= width:
            before = number - width
            (folder / "stack.yaml").write_text(f"after: [g{before % 10}/s{before}]\n")
        folders.append(folder)
    (root / ".gitignore").write_text(".stackyard/\n*.tfstate*\n.terraform/\nplan\n")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-q", "-m", "begin")):
        subprocess.run([shutil.which("git") or "git", *words], cwd=root, check=True)
    return folders


def _compare(rounds: int, ours: Callable[[], float], bare: Callable[[], float]) -> tuple[float, float]:
    """Return the best time of each, taken in turn so that both see the same machine."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for index, once in enumerate((ours, bare)):
            best[index] = min(best[index], once())
    return best[0], best[1]


def _program(root: Path, *words: str) -> float:
    began_s = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "stackyard", *words],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
    )
    took_s = time.perf_counter() - began_s
    if ended.returncode != 0:
        raise RuntimeError(f"{words} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return took_s


def _pool(folders: Sequence[Path], at_once: int, commands: Sequence[Sequence[str]]) -> float:
    env = dict(os.environ)

    def work(folder: Path) -> None:
        for command in commands:
            subprocess.run(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )

    began_s = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, folders))
    return time.perf_counter() - began_s
