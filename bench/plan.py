"""What driving the engine costs: `engine.tofu.plan` beside the same command run bare."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figure import Figure
from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.engine import tofu
from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Flavour
from stackyard.engine.workdir import Workdir

if TYPE_CHECKING:
    from stackyard.engine.version import Engine

__all__ = ["measure"]

# How many resources, and how many rounds: a short run needs more of them to meet a quiet moment.
SIZES = {1: 25, 500: 9}
AIM_RATIO = 1.15
ALLOWANCE_S = 0.05


def measure() -> list[Figure]:
    """Return the cost of planning a small and a large configuration; nothing without an OpenTofu."""
    engine = _find_tofu()
    if isinstance(engine, str):
        sys.stdout.write(f"  engine.tofu plan: skipped, {engine}\n")
        return []
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as folder:
        return [_compare(engine, Path(folder), size=size, rounds=rounds) for size, rounds in SIZES.items()]


def _find_tofu() -> Engine | str:
    try:
        found = asyncio.run(find_engine()).engine
    except StackyardError as err:
        return err.detail
    return found if found.flavour is Flavour.TOFU else f"only {found} was found"


def _compare(engine: Engine, parent: Path, *, size: int, rounds: int) -> Figure:
    folder = parent / str(size)
    folder.mkdir()
    (folder / "main.tf").write_text(
        f'resource "terraform_data" "a" {{\n  count = {size}\n  input = "x"\n}}\n'
    )
    workdir, out = Workdir(engine=engine, folder=folder), folder / "plan"
    seen: list[events.Event] = []

    def ours() -> None:
        asyncio.run(tofu.plan(workdir, out, emit=seen.append))

    best_s = {"ours": float("inf"), "bare": float("inf")}
    for _ in range(rounds):
        # In turn, not one after the other: a busy moment of the machine then hits both.
        best_s["bare"] = min(best_s["bare"], _time_bare_s(workdir, out))
        began_s = time.perf_counter()
        ours()
        best_s["ours"] = min(best_s["ours"], time.perf_counter() - began_s)
    return Figure(
        name=f"engine.tofu plan of {size} resources",
        measured_s=best_s["ours"],
        floor_name="the same tofu plan run bare",
        floor_s=best_s["bare"],
        aim_ratio=AIM_RATIO,
        allowance_s=ALLOWANCE_S,
    )


def _time_bare_s(workdir: Workdir, out: Path) -> float:
    """Run the same command with the least around it, and return how long it took."""
    flags = ("-no-color", "-json", "-input=false", "-lock-timeout=0ms", "-detailed-exitcode", f"-out={out}")
    env = workdir.env()
    began_s = time.perf_counter()
    done = subprocess.run(
        [str(workdir.engine.path), "plan", *flags],
        cwd=workdir.folder,
        env=env,
        capture_output=True,
        check=False,
    )
    elapsed_s = time.perf_counter() - began_s
    if done.returncode != 2:
        raise RuntimeError(f"tofu plan ended with {done.returncode}: {done.stderr.decode()}")
    return elapsed_s
