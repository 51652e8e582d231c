"""Measure what is promised, each figure beside its floor: `make bench`, `python -m bench [NAME ...]`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench

_NOT_MEASURED = {
    "__main__",
    "at_once",
    "bare_server",
    "clients",
    "figure",
    "operating",
    "resource_mix",
    "serve_provider",
    "site_on_lab",
}


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
            say(f"  {figure}")
            missed += not figure.is_met
    say("Every aim is met." if not missed else f"{missed} aims are missed.")
    return 1 if missed else 0


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
