"""How long a command takes to start, against the command-line library alone."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.figure import Figure

_ROUNDS = 9
_FLOOR = [sys.executable, "-c", "import click"]
# The help of a verb costs what the program costs, whatever the verb would load to run.
_STARTS = {
    name: [sys.executable, "-m", "stackyard", *name.split()]
    for name in ("--version", "--help", "plan --help", "serve --help")
}


def measure() -> list[Figure]:
    """Time the shortest commands, in turn with the floor so that all see the same machine."""
    floor_s = float("inf")
    best_s = dict.fromkeys(_STARTS, float("inf"))
    for _ in range(_ROUNDS):
        floor_s = min(floor_s, _run(_FLOOR))
        for name, argv in _STARTS.items():
            best_s[name] = min(best_s[name], _run(argv))
    return [
        Figure(
            name=f"start of `stackyard {name}`",
            measured_s=taken_s,
            floor_name='python -c "import click"',
            floor_s=floor_s,
            aim_ratio=1.5,
            allowance_s=0.05,
        )
        for name, taken_s in best_s.items()
    ]


def _run(argv: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
