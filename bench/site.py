"""What a large site costs: validated and resolved, beside the same files read with libyaml alone."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from tests.support.site_large import write_large_site

from bench.figure import Figure, MemoryFigure
from stackyard.sources.site import ConfigResolver

__all__ = ["measure", "resolve_everything"]

NODES, GUESTS, SPECS = 1000, 10_000, 500
ROUNDS = 3
AIM_RATIO = 3.0


def measure() -> list[Figure | MemoryFigure]:
    """Return time and memory of a large site, and of validating it alone."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name)
        files = write_large_site(folder, nodes=NODES, guests=GUESTS, specs=SPECS)
        best_s = {"read": float("inf"), "validate": float("inf"), "all": float("inf")}
        for _ in range(ROUNDS):
            # In turn, not one after the other: a busy moment of the machine then hits all of them.
            best_s["read"] = min(best_s["read"], _read_s(files))
            validated_s, all_s = _ours_s(folder)
            best_s["validate"] = min(best_s["validate"], validated_s)
            best_s["all"] = min(best_s["all"], all_s)
        memory = [_memory_bytes(folder, program) for program in (_OURS, _FLOOR)]
    what = f"{NODES} nodes, {GUESTS} guests, {SPECS} specs"
    floor = "reading the files with libyaml"
    return [
        *(
            Figure(
                name=f"{verb} a site of {what}",
                measured_s=best_s[key],
                floor_name=floor,
                floor_s=best_s["read"],
                aim_ratio=AIM_RATIO,
            )
            for verb, key in (("validate", "validate"), ("validate and resolve", "all"))
        ),
        MemoryFigure(
            name=f"memory for a site of {what}, resolved",
            measured_bytes=memory[0],
            floor_name=f"{floor} and keeping them",
            floor_bytes=memory[1],
            aim_ratio=AIM_RATIO,
        ),
    ]


def _read_s(files: list[Path]) -> float:
    # The time of the processor: nothing here waits, and what else the machine does is not our matter.
    gc.collect()
    began_s = time.process_time()
    for path in files:
        yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    return time.process_time() - began_s


def _ours_s(folder: Path) -> tuple[float, float]:
    gc.collect()
    began_s = time.process_time()
    resolver = ConfigResolver(folder)
    validated_s = time.process_time() - began_s
    resolve_everything(resolver)
    return validated_s, time.process_time() - began_s


def resolve_everything(resolver: ConfigResolver) -> None:
    """Resolve every env both ways, every node and every spec."""
    node = resolver.list_nodes()[0]
    for env in resolver.list_envs():
        resolver.resolve_env(env, node)
        resolver.resolve_desired(env, node)
    for name in resolver.list_nodes():
        resolver.resolve_host(name)
    for name in resolver.list_specs():
        resolver.resolve_spec(name)


# Each is run in a process of its own, and what was read stays until the end, as it does in a run.
_OURS = """
import sys
from stackyard.sources.site import ConfigResolver
from bench.site import resolve_everything
before = kib("VmRSS")
kept = ConfigResolver(sys.argv[1])
resolve_everything(kept)
print(kib("VmHWM") - before)
"""
_FLOOR = """
import sys, pathlib, yaml
before = kib("VmRSS")
files = pathlib.Path(sys.argv[1]).rglob("*.yaml")
kept = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in files]
print(kib("VmHWM") - before)
"""
# Not getrusage: what that says of a child includes what its parent had.
_MEMORY = """
def kib(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))
"""


def _memory_bytes(folder: Path, program: str) -> int:
    """Return the most memory that a process of its own needed for it, on top of the program itself."""
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY + program, str(folder)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024
