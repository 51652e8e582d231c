"""What the operator costs beside what it waits for: flat manifests, nodes inside nodes, and a thousand nodes.

Flat manifests are made on a lab that takes 4 s to create a guest and 12 s to boot one, with 5 s for the
configuration of each; the floor is that chain, which no operator can be faster than. Nodes inside nodes are
made on the same lab through real SSH, with stackyard sent to each inner node; there the floor is the chain
of creating, booting and configuring as the nodes themselves report it. A thousand nodes go to a lab that
takes no time, and the floor is `stackyard apply` of the same guests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figure import Figure, MemoryFigure
from bench.lab import environment
from bench.site_on_lab import site_on_lab
from stackyard.base.errors import StackyardError
from stackyard.engine.tools.find import find_engine

__all__ = ["measure"]

CREATE_S, BOOT_S, CONFIGURATION_S = 4.0, 12.0, 5.0
SIZES = (1, 2, 4, 8, 16)
DEPTHS = (2, 3)
AIM_RATIO = 1.25
# How many nodes on the lab that takes no time.
MANY = int(os.environ.get("STACKYARD_BENCH_NODES", "1000"))
# What the original needs, as its own code takes it: for the eye, not for the aim.
ORIGINAL_S, ORIGINAL_EACH_S = 3.7, 27.8
# What one level of delegation may add: sending stackyard, making it ready, and starting it.
LEVEL_ALLOWANCE_S = 20.0

_LATENCY = f"create={CREATE_S:g},boot={BOOT_S:g}"
_CONFIGURING = ("wait_ssh", "wait_first_boot", "apply_spec", "apply_playbook", "wait_spec")


def measure() -> Iterator[Figure | MemoryFigure]:
    """Return everything that is promised of the operator; nothing without an engine."""
    try:
        asyncio.run(find_engine())
    except StackyardError as err:
        sys.stdout.write(f"  operator: skipped, {err.detail}\n")
        return
    yield from _flat()
    yield from _many()
    if shutil.which("bwrap") is None:
        sys.stdout.write("  operator: nodes inside nodes skipped, bubblewrap is not installed\n")
        return
    yield from _trees()


# --- A site and its lab


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yard:
    """A site, and the lab that it is for."""

    folder: Path

    def write(self, name: str, nodes: Sequence[Mapping[str, Any]]) -> Path:
        """Write a manifest."""
        path = self.folder / "manifests" / f"{name}.yaml"
        path.write_text(json.dumps({"schema_version": 2, "name": name, "nodes": list(nodes)}))
        return path


@contextlib.contextmanager
def _yard(*options: str) -> Iterator[_Yard]:
    with site_on_lab(f"bench-operator-{os.getpid()}", *options) as (folder, _):
        yield _Yard(folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What a program took, and what it said."""

    took_s: float
    memory_bytes: int
    outcome: Mapping[str, Any]


def _run(yard: _Yard, *arguments: str) -> _Run:
    """Run a module of Python in the site; its memory is the most that it or a program of its own had."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        began_s = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=yard.folder,
            env={**environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.perf_counter() - began_s
        said.seek(0)
        errors.seek(0)
        text = said.read().decode()
        if process.returncode != 0:
            tail = f"{text[-3000:]}\n{errors.read().decode()[-2000:]}"
            raise RuntimeError(f"{arguments} ended with {process.returncode}: {tail}")
    outcome = json.loads(text.splitlines()[-1])
    return _Run(took_s=took_s, memory_bytes=usage.ru_maxrss * 1024, outcome=outcome)


def _guest(number: int, **more: Any) -> dict[str, Any]:
    size = {"cores": 1, "memory": 64, "disks": [{"size_gib": 1}]}
    return {"name": f"vm{number}", "type": "vm", "vmid": 20000 + number, **size, **more}


# --- Flat


def _flat() -> Iterator[Figure]:
    floor_s = CREATE_S + BOOT_S + CONFIGURATION_S
    for size in SIZES:
        with _yard("--latency", _LATENCY, "--guests", "recorded") as yard:
            path = yard.write("flat", [_guest(n, image="debian-12", disk=4, disks=None) for n in range(size)])
            _prepare(yard)
            ran = _run(yard, "bench.operating", "create", str(yard.folder), str(path), str(CONFIGURATION_S))
        original_s = ORIGINAL_S + ORIGINAL_EACH_S * size
        yield Figure(
            name=f"create of {size} nodes side by side",
            measured_s=ran.took_s,
            floor_name="create, boot and configuration of one",
            floor_s=floor_s,
            aim_ratio=AIM_RATIO,
            note=f"the original needs {original_s:.0f} s",
        )


def _prepare(yard: _Yard) -> None:
    """Let the engine prepare a folder once, which installs nothing later on."""
    yard.write("warm", [_guest(900)])
    _run(yard, "stackyard", "plan", "manifest:warm", "--json")


# --- A thousand


def _many() -> Iterator[Figure | MemoryFigure]:
    guests = [_guest(n) for n in range(MANY)]
    with _yard("--guests", "recorded") as yard:
        yard.write("flat", guests)
        _prepare(yard)
        floor = _run(yard, "stackyard", "apply", "manifest:flat", "--parallelism", "64", "--json")
    with _yard("--guests", "recorded") as yard:
        path = yard.write("flat", guests)
        _prepare(yard)
        ran = _run(yard, "bench.operating", "create", str(yard.folder), str(path), "0")
        again = _run(yard, "bench.operating", "create", str(yard.folder), str(path), "0")
    yield Figure(
        name=f"create of {MANY:,} nodes on the instant lab",
        measured_s=ran.took_s,
        floor_name="stackyard apply of the same",
        floor_s=floor.took_s,
        aim_ratio=AIM_RATIO,
    )
    yield Figure(
        name=f"create of {MANY:,} nodes that are there",
        measured_s=again.took_s,
        floor_name="making them",
        floor_s=ran.took_s,
        aim_ratio=1.0,
    )
    yield MemoryFigure(
        name=f"memory of create, {MANY:,} nodes",
        measured_bytes=ran.memory_bytes,
        floor_name="stackyard apply of the same",
        floor_bytes=floor.memory_bytes,
        aim_ratio=AIM_RATIO,
    )


# --- Nodes inside nodes


def _trees() -> Iterator[Figure]:
    for depth in DEPTHS:
        with _yard("--latency", _LATENCY, "--guests", "sandbox") as yard:
            yard.write("tree", _tree(depth))
            _prepare(yard)
            ran = _run(yard, "stackyard", "create", "-M", "tree", "-H", "lab", "--json")
        chain_s = sum(map(_chain_s, ran.outcome["nodes"]))
        yield Figure(
            name=f"create of a tree of depth {depth}",
            measured_s=ran.took_s,
            floor_name="create, boot and configuration of the chain",
            floor_s=chain_s,
            aim_ratio=AIM_RATIO,
            allowance_s=LEVEL_ALLOWANCE_S * (depth - 1),
            note=f"{(ran.took_s - chain_s) / (depth - 1):.1f} s for each level of delegation",
        )


def _chain_s(node: Mapping[str, Any]) -> float:
    """Return what a node of the chain has to wait for; a lab inside of a node is as slow as the outer one."""
    own_s = sum(phase["duration"] for phase in node["phases"] if phase["name"] in _CONFIGURING)
    return float(own_s) + CREATE_S + BOOT_S


def _tree(depth: int) -> list[dict[str, Any]]:
    sizes = ("vm-xlarge", "vm-large", "vm-small")[-depth:]
    nodes: list[dict[str, Any]] = []
    for level, preset in enumerate(sizes):
        is_leaf = level == depth - 1
        node: dict[str, Any] = {"name": f"level{level}", "preset": preset, "vmid": 21000 + level}
        node |= {"type": "vm", "image": "debian-12", "spec": "base"} if is_leaf else {"type": "pve"}
        if not is_leaf:
            node["image"] = "debian-13-pve"
        if level:
            node["parent"] = f"level{level - 1}"
        nodes.append(node)
    return nodes
