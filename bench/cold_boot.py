"""Cold boots: `cluster up` on a lab whose work takes as long as on hardware, beside the critical path.

The critical path is what even the best program waits for: download, create, start, boot, install, reboot,
etcd and the Kubernetes API, each once, because nodes do all of it side by side.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.figure import Figure, MemoryFigure
from bench.lab import environment, started
from bench.path import find_tofu
from pvelab.faults.latency import Latency, Speed, Work

__all__ = ["measure"]

_SIZES = (3, 10, 50)
_RERUN = 10
_NETWORK = "127.232.0.0/16"
_NODES = "pve1,pve2,pve3"
_PATH = (
    *(Work.DOWNLOAD, Work.CREATE, Work.START, Work.BOOT, Work.INSTALL),
    *(Work.REBOOT, Work.BOOT, Work.BOOTSTRAP, Work.APISERVER),
)
_PLUGIN = Path(__file__).parents[1] / "examples" / "cluster" / "kubernetes" / "bootstrap" / "network.yaml"
# So small that fifty fit on the hosts: the guard refuses more than they have room for.
_SMALL = """\
proxmox_vm_controller_defaults: {memory: 2048, disk_size: 32}
proxmox_vm_worker_defaults: {memory: 1024, disk_size: 32}
"""


def measure() -> Iterator[Figure | MemoryFigure]:
    """Time a cold boot of each size, a rerun without changes, and the memory of the largest."""
    engine = find_tofu()
    if isinstance(engine, str):
        sys.stdout.write(f"  cold_boot: skipped, {engine}\n")
        return
    latency = Latency(speed=Speed.REAL)
    floor_s = sum(latency.seconds(work) for work in _PATH)
    for size in _SIZES:
        with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name, _lab(size) as lab:
            folder = _make_cluster(Path(name), size, lab)
            took_s = _time_up(folder)
            yield Figure(
                name=f"cold boot of {size} nodes to Ready",
                measured_s=took_s,
                floor_name="the critical path of the hardware",
                floor_s=floor_s,
                aim_ratio=1.2,
            )
            if size == _RERUN:
                yield Figure(
                    name=f"cluster up of {size} nodes with nothing to do",
                    measured_s=_time_up(folder),
                    floor_name="three seconds",
                    floor_s=3.0,
                    aim_ratio=1.0,
                )
    # The largest of all programs that ended, in this process: the last and largest boot, or OpenTofu in it.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    yield MemoryFigure(
        name=f"the largest program of a cold boot of {_SIZES[-1]} nodes",
        measured_bytes=peak,
        floor_name="this program",
        floor_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        aim_ratio=4.0,
    )


@contextlib.contextmanager
def _lab(size: int) -> Iterator[Mapping[str, Any]]:
    """Run a lab in a process of its own; give what it said."""
    command = [sys.executable, "-m", "stackyard", "lab", "up", "--foreground", "--json", "--port", "0"]
    options = ["--nodes", _NODES, "--factory-port", "0", "--guest-network", _NETWORK, "--speed", "real"]
    name = f"bench-boot-{size}-{os.getpid()}"
    with started([*command, *options, "--name", name]) as (_, line):
        yield {**json.loads(line), "name": name}


def _make_cluster(home: Path, size: int, lab: Mapping[str, Any]) -> Path:
    folder = home / "cluster"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    _run(folder, "cluster", "init", "--nodes", str(size), "--lab", str(lab["name"]))
    with open(folder / "cluster.yaml", "a", encoding="utf-8") as stream:
        stream.write(_SMALL)
    (folder / "network.yaml").write_bytes(_PLUGIN.read_bytes())
    (folder / "bootstrap.yaml").write_text("network: {manifests: network.yaml}\n")
    return folder


def _time_up(folder: Path) -> float:
    began = time.perf_counter()
    _run(folder, "cluster", "up", "--yes")
    return time.perf_counter() - began


def _run(folder: Path, *words: str) -> None:
    env = {**environment(), "XDG_CONFIG_HOME": str(folder.parent / "config")}
    argv = [sys.executable, "-m", "stackyard", *words]
    ended = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{argv}\n{ended.stdout}\n{ended.stderr}")
