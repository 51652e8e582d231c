"""How long a command takes to start, against the command-line library alone."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.figure import Figure

_ROUNDS = 9


def measure() -> list[Figure]:
    """Time `stackyard --version` and `--help`, in turn with the floor so that both see the same machine."""
    floor = [sys.executable, "-c", "import click"]
    version = [sys.executable, "-m", "stackyard", "--version"]
    shown_help = [sys.executable, "-m", "stackyard", "--help"]
    best = {name: float("inf") for name in ("floor", "version", "help")}
    for _ in range(_ROUNDS):
        for name, argv in (("floor", floor), ("version", version), ("help", shown_help)):
            best[name] = min(best[name], _run(argv))
    return [
        Figure(
            name=f"start of `stackyard --{name}`",
            measured_s=best[name],
            floor_name='python -c "import click"',
            floor_s=best["floor"],
            aim_ratio=2.5,
        )
        for name in ("version", "help")
    ]


def _run(argv: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
