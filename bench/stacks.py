"""How long it takes to list the stacks that a commit touches, on top of the start of the program.

Each round measures `--version` beside it. Terramate and Terragrunt do the same work beside ours where
STACKYARD_BENCH_TERRAMATE and STACKYARD_BENCH_TERRAGRUNT name their binaries; for those figures the floor is
the other program, and the aim is to be no slower than it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.stacks_large import write_large_repository

from bench.figure import Figure

_ROUNDS = 7
_OURS = [sys.executable, "-m", "stackyard", "stack", "list", "--changed"]
_VERSION = [sys.executable, "-m", "stackyard", "--version"]
# By the number of stacks: what a warm and a cold run may take on top of `--version`.
_WARM_S = {100: 0.1, 1000: 0.1, 3000: 0.3}
_COLD_S = {100: 0.6, 1000: 0.6, 3000: 1.8}
# Four files a stack are four times the code to read.
_COLD_OF_FOUR_S = 1.2
_OTHERS = {
    "terramate": ("STACKYARD_BENCH_TERRAMATE", ("list", "--changed", "--git-change-base", "main")),
    "terragrunt": ("STACKYARD_BENCH_TERRAGRUNT", ("find", "--filter", "[main...HEAD]")),
}


def measure() -> list[Figure]:
    """Time the listing on repositories of several sizes, cold and warm."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        for count in _WARM_S:
            folder = Path(name) / f"stacks-{count}"
            write_large_repository(folder, count, for_others=any(_found_others()))
            figures += _measure(folder, f"{count} stacks", warm_s=_WARM_S[count], cold_s=_COLD_S[count])
        folder = Path(name) / "stacks-of-four"
        write_large_repository(folder, 1000, four_files=True)
        figures += _measure(folder, "1000 stacks of four files", warm_s=0.15, cold_s=_COLD_OF_FOUR_S)
    return figures


def _measure(folder: Path, what: str, *, warm_s: float, cold_s: float) -> list[Figure]:
    best = dict.fromkeys(("version", "cold", "warm", *(name for name, _ in _found_others())), float("inf"))
    for _ in range(_ROUNDS):
        # In turn, not one after the other: a busy moment of the machine then hits all of them.
        best["version"] = min(best["version"], _run(_VERSION, folder))
        shutil.rmtree(folder / ".stackyard", ignore_errors=True)
        best["cold"] = min(best["cold"], _run(_OURS, folder))
        best["warm"] = min(best["warm"], _run(_OURS, folder))
        for name, argv in _found_others():
            best[name] = min(best[name], _run(argv, folder))
    figures = [
        Figure(
            name=f"list what changed of {what}, {state}",
            measured_s=best[state],
            floor_name="`--version`",
            floor_s=best["version"],
            aim_ratio=1.0,
            allowance_s=allowance_s,
        )
        for state, allowance_s in (("cold", cold_s), ("warm", warm_s))
    ]
    return figures + [
        Figure(
            name=f"list what changed of {what}, warm",
            measured_s=best["warm"],
            floor_name=name,
            floor_s=best[name],
            aim_ratio=1.0,
        )
        for name, _ in _found_others()
    ]


def _found_others() -> Iterator[tuple[str, list[str]]]:
    for name, (variable, arguments) in _OTHERS.items():
        program = os.environ.get(variable)
        if program:
            yield name, [program, *arguments]


def _run(argv: list[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
