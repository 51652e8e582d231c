"""What the built-in provider costs beside bpg's: plan, apply and plan without changes of many kinds.

Both work with the same engine on the same lab, which is in a process of its own and made new in between. What
is measured is the engine, from its start to its end. It starts bpg's; ours begins to load at the same moment,
in a process that has what every run of the program has loaded by then. The floor is the engine with a
provider that answers at once, without a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figure import Figure, MemoryFigure
from bench.lab import environment, started
from bench.resource_mix import KINDS, make_mix
from stackyard.base.errors import StackyardError
from stackyard.engine.tools.find import find_engine

__all__ = ["measure"]

BPG_VARIABLE, LARGE_VARIABLE = "STACKYARD_TEST_BPG", "STACKYARD_BENCH_LARGE"
SIZE, LARGE = 100, 1000
ROUNDS = 3
STEPS = ("plan", "apply", "plan without changes")
BESIDE_BPG, BESIDE_FLOOR = 0.65, 1.15
_ARGUMENTS = {
    "plan": ("plan", "-input=false", "-out=plan"),
    "apply": ("apply", "-input=false", "plan"),
    "plan without changes": ("plan", "-input=false", "-detailed-exitcode"),
}
_ROOT = Path(__file__).resolve().parent.parent
_HEAD = 'terraform {\n  required_providers {\n    proxmox = { source = "bpg/proxmox" }\n  }\n}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What one step took."""

    took_s: float
    memory_bytes: int
    calls: int = 0


_Costs = dict[str, _Cost]


def measure() -> Iterator[Figure | MemoryFigure]:
    """Return what is promised of the provider; nothing without an engine and a bpg/proxmox."""
    binary = os.environ.get(BPG_VARIABLE)
    if not binary:
        sys.stdout.write(f"  provider: skipped, {BPG_VARIABLE} names no bpg/proxmox\n")
        return
    try:
        engine = asyncio.run(find_engine()).engine.path
    except StackyardError as err:
        sys.stdout.write(f"  provider: skipped, {err.detail}\n")
        return
    with _workplace(engine, Path(binary).absolute()) as place:
        small = place.compare(SIZE, ROUNDS)
        yield from _figures(small)
        if os.environ.get(LARGE_VARIABLE):
            large = {who: place.measure(LARGE, who) for who in ("ours", "bpg")}
            yield from _growth(small, large)


# --- Places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workplace:
    """A folder for the engine, a lab, and both providers."""

    folder: Path
    engine: Path
    lab: str
    ready: Mapping[str, Any]
    at_once: str

    def compare(self, size: int, rounds: int) -> dict[str, _Costs]:
        """Return the best of some rounds, each of which asks all in turn."""
        best: dict[str, _Costs] = {}
        for _ in range(rounds):
            for who in ("ours", "bpg", "floor"):
                for step, cost in self.measure(size, who).items():
                    known = best.setdefault(who, {}).get(step)
                    best[who][step] = cost if known is None or cost.took_s < known.took_s else known
        return best

    def measure(self, size: int, who: str) -> _Costs:
        """Plan, apply and plan again from nothing."""
        _run_lab("reset", "--name", self.lab)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            (Path(folder) / "main.tf").write_text(_HEAD + make_mix(size))
            return {step: self._step(Path(folder), who, step) for step in STEPS}

    def _step(self, folder: Path, who: str, step: str) -> _Cost:
        before = self._count_calls()
        command, report = [str(self.engine), *_ARGUMENTS[step]], folder / "report"
        env = {
            **environment(),
            "PYTHONPATH": str(_ROOT),
            "PROXMOX_VE_ENDPOINT": self.ready["url"],
            "PROXMOX_VE_USERNAME": "root@pam",
            "PROXMOX_VE_PASSWORD": self.ready["password"],
            "PROXMOX_VE_INSECURE": "true",
            "TF_CLI_CONFIG_FILE": str(self.folder / "cli.tfrc") if who == "bpg" else os.devnull,
        }
        if who == "floor":
            env["TF_REATTACH_PROVIDERS"] = self.at_once
        elif who == "ours":
            command = [sys.executable, "-m", "bench.serve_provider", str(report), *command]
        took_s, memory_bytes = _timed(command, folder, env)
        if who == "ours":
            took_s = float(report.read_text())
        # One call is ours: the question for their number.
        return _Cost(took_s=took_s, memory_bytes=memory_bytes, calls=self._count_calls() - before)

    def _count_calls(self) -> int:
        request = urllib.request.Request(  # noqa: S310 - the lab's own address
            f"{self.ready['url']}/_lab/journal?after=999999999",
            headers={"Authorization": f"PVEAPIToken={self.ready['api_token']}"},
        )
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(request, context=trusting) as answer:  # noqa: S310 - as above
            return int(json.load(answer)["count"])


@contextlib.contextmanager
def _workplace(engine: Path, binary: Path) -> Iterator[_Workplace]:
    lab = f"bench-provider-{os.getpid()}"
    command = [sys.executable, "-m", "stackyard", "lab", "up", "--foreground", "--json", "--port", "0"]
    with (
        tempfile.TemporaryDirectory(prefix="stackyard-bench-") as folder,
        started([*command, "--nodes", "pve1", "--name", lab]) as (_, line),
        _at_once() as reattach,
    ):
        plugins = Path(folder) / "plugins"
        plugins.mkdir()
        (plugins / "terraform-provider-proxmox").symlink_to(binary)
        overrides = f'dev_overrides {{ "bpg/proxmox" = "{plugins}" }}'
        settings = f"provider_installation {{\n  {overrides}\n  direct {{}}\n}}\n"
        (Path(folder) / "cli.tfrc").write_text(settings)
        yield _Workplace(
            folder=Path(folder), engine=engine, lab=lab, ready=json.loads(line), at_once=reattach
        )


@contextlib.contextmanager
def _at_once() -> Iterator[str]:
    """Serve a provider that answers at once; give how an engine finds it."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.serve_provider"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        if process.stdin is not None and process.stdout is not None:
            yield process.stdout.readline().strip()
            process.stdin.close()


def _run_lab(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "stackyard", "lab", *arguments],
        env=environment(),
        capture_output=True,
        check=True,
    )


# --- Time and memory


def _timed(command: list[str], folder: Path, env: Mapping[str, str]) -> tuple[float, int]:
    """Run a program; return its time, and the most memory that it and all its own programs had at once."""
    began_s = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        most, ended = [0], threading.Event()
        watching = threading.Thread(target=_watch_memory, args=(process.pid, most, ended))
        watching.start()
        status = process.wait()
        took_s = time.perf_counter() - began_s
        ended.set()
        watching.join()
        if status != 0:
            said.seek(0)
            raise RuntimeError(f"{command} ended with {status}: {said.read().decode()[-3000:]}")
    return took_s, most[0]


def _watch_memory(pid: int, most: list[int], ended: threading.Event) -> None:
    while not ended.wait(0.05):
        most[0] = max(most[0], sum(_resident_bytes(one) for one in _family(pid)))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


# --- Figures


def _figures(costs: dict[str, _Costs]) -> Iterator[Figure | MemoryFigure]:
    for step in STEPS:
        ours, theirs, floor = (costs[who][step] for who in ("ours", "bpg", "floor"))
        most_s = max(BESIDE_BPG * theirs.took_s, BESIDE_FLOOR * floor.took_s)
        yield Figure(
            name=f"{step}, {SIZE} resources of {KINDS} kinds",
            measured_s=ours.took_s,
            floor_name="bpg/proxmox",
            floor_s=theirs.took_s,
            aim_ratio=round(most_s / theirs.took_s, 2),
            note=f"{ours.calls} calls, bpg {theirs.calls}; {ours.took_s / floor.took_s:.2f} x a provider "
            f"that answers at once ({floor.took_s * 1000:.0f} ms)",
        )
    yield MemoryFigure(
        name=f"memory of apply, {SIZE} resources",
        measured_bytes=costs["ours"]["apply"].memory_bytes,
        floor_name="bpg/proxmox",
        floor_bytes=costs["bpg"]["apply"].memory_bytes,
        aim_ratio=1.25,
    )


def _growth(small: dict[str, _Costs], large: dict[str, _Costs]) -> Iterator[Figure]:
    for step in STEPS:
        ours, theirs = (large[who][step].took_s / small[who][step].took_s for who in ("ours", "bpg"))
        yield Figure(
            name=f"{step}, from {SIZE} to {LARGE} resources",
            measured_s=large["ours"][step].took_s,
            floor_name=f"{SIZE} resources",
            floor_s=small["ours"][step].took_s,
            aim_ratio=LARGE / SIZE,
            note=f"{large['ours'][step].calls} calls, {ours / theirs:.2f} x the growth of bpg, which takes "
            f"{large['bpg'][step].took_s * 1000:.0f} ms",
        )
