"""Measure what is promised, each figure beside its floor: `make bench`, `python -m bench [NAME ...]`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench
from bench.figure import Figure

_NOT_MEASURED = {"__main__", "figure"}


def main(wanted: list[str]) -> int:
    """Run the measurements named, or all of them; the status is 1 when an aim is missed."""
    names = [found.name for found in pkgutil.iter_modules(bench.__path__) if found.name not in _NOT_MEASURED]
    unknown = set(wanted) - set(names)
    if unknown:
        say(f"There is no measurement {', '.join(sorted(unknown))}; there are {', '.join(names)}.")
        return 64
    missed = 0
    for name in wanted or names:
        say(f"{name}: measuring ...")
        for figure in importlib.import_module(f"bench.{name}").measure():
            say(row(figure))
            missed += not figure.is_met
    say("Every aim is met." if not missed else f"{missed} aims are missed.")
    return 1 if missed else 0


def row(figure: Figure) -> str:
    """Return the line of a figure."""
    allowance = f" + {figure.allowance_s * 1000:.0f} ms" if figure.allowance_s else ""
    verdict = "met" if figure.is_met else "MISSED"
    return (
        f"  {figure.name}: {figure.measured_s * 1000:.1f} ms, {figure.ratio:.2f} x {figure.floor_name}"
        f" ({figure.floor_s * 1000:.1f} ms); aim {figure.aim_ratio:g} x{allowance}: {verdict}"
    )


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
