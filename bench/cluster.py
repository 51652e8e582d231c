"""Talos clusters: how long their files take, and an apply of 12 nodes beside plain OpenTofu with bpg/proxmox.

Checking and generating are measured in a process that is warm, as an editor or a controller has it, and as
two commands on top of the start of the program. The apply of others is OpenTofu in the generated folder, as
`infrastructure/README.md` describes it: `tofu plan -out`, then `tofu apply` of that plan.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.path import mirror_of

from bench.figure import Figure
from bench.lab import environment, started
from bench.path import BPG_VARIABLE, find_tofu
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.keys import make_keyring
from stackyard.sources.cluster import load_cluster
from stackyard.sources.cluster.validate import validate_clusters

__all__ = ["measure"]

_MANY = 100
_APPLIED = 12
_ROUNDS = 5
_NETWORK = "127.231.0.0/16"


def measure() -> Iterator[Figure]:
    """Time the files of 100 nodes, then an apply of 12 nodes where there is an OpenTofu."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        yield from _measure_files(Path(name))
    engine = find_tofu()
    if isinstance(engine, str):
        sys.stdout.write(f"  cluster: the apply is skipped, {engine}\n")
    elif not os.environ.get(BPG_VARIABLE):
        sys.stdout.write(f"  cluster: the apply is skipped, {BPG_VARIABLE} names no provider\n")
    else:
        with _lab() as lab, tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
            yield _measure_apply(Path(name), lab, engine)


# --- Files


def _measure_files(home: Path) -> Iterator[Figure]:
    folder = _make_cluster(home, "--nodes", str(_MANY))
    _run(folder, home, "cluster", "configure", "--no-init")
    one = min(_time_commands(folder, home) for _ in range(_ROUNDS))
    start = 2 * min(_timed(lambda: _run(folder, home, "--version")) for _ in range(_ROUNDS))
    yield Figure(
        name=f"validate and configure {_MANY} nodes, two commands",
        measured_s=one,
        floor_name="`--version` twice",
        floor_s=start,
        aim_ratio=1.0,
        allowance_s=1.0,
    )
    os.environ["XDG_CONFIG_HOME"] = str(home / "config")
    warm = min(_timed(functools.partial(_work, folder, number)) for number in range(_ROUNDS))
    written = configure(load_cluster(folder), keyring=make_keyring(folder)).written
    yield Figure(
        name=f"validate and configure {_MANY} nodes, warm",
        measured_s=warm,
        floor_name="half a second",
        floor_s=0.5,
        aim_ratio=1.0,
        note=f"the next run writes {len(written)} files",
    )


def _time_commands(folder: Path, home: Path) -> float:
    took_s = _timed(lambda: _run(folder, home, "cluster", "validate"))
    return took_s + _timed(lambda: _run(folder, home, "cluster", "configure", "--no-init"))


def _work(folder: Path, number: int) -> None:
    """Check the files and write what a new version of Talos changes."""
    path = folder / "cluster.yaml"
    lines = path.read_text().splitlines()
    changed = [f"talos_version: 1.12.{number}" if one.startswith("talos_version:") else one for one in lines]
    path.write_text("\n".join(changed) + "\n")
    here = Path.cwd()
    os.chdir(folder)
    try:
        validate_clusters(None)
    finally:
        os.chdir(here)
    report = configure(load_cluster(folder), keyring=make_keyring(folder))
    if number and not report.written:
        raise RuntimeError("nothing was generated")


# --- Apply


@contextlib.contextmanager
def _lab() -> Iterator[Mapping[str, Any]]:
    """Run a lab in a process of its own; give what it said."""
    command = [sys.executable, "-m", "stackyard", "lab", "up", "--foreground", "--json", "--port", "0"]
    options = [
        "--nodes",
        "pve1,pve2,pve3",
        "--factory-port",
        "0",
        "--guest-network",
        _NETWORK,
    ]
    name = f"bench-cluster-{os.getpid()}"
    with started([*command, *options, "--name", name]) as (_, line):
        yield {**json.loads(line), "name": name}


def _measure_apply(home: Path, lab: Mapping[str, Any], engine: Path) -> Figure:
    folder = _make_cluster(home, "--nodes", str(_APPLIED), "--lab", str(lab["name"]))
    _number(folder / "nodes.yaml")
    _run(folder, home, "cluster", "configure")
    settings = mirror_of(Path(os.environ[BPG_VARIABLE]).absolute(), engine, home / "bpg")
    theirs = _Plain(folder, engine, settings, str(lab["api_token"]))
    # The first run registers the schematic and prepares folders; then both begin with an empty lab in turn.
    _run(folder, home, "plan", "cluster:kubernetes")
    _apply(folder, home)
    theirs.prepare()
    best = {"ours": float("inf"), "theirs": float("inf")}
    for _round in range(3):
        _reset(lab, folder)
        best["ours"] = min(best["ours"], _timed(lambda: _apply(folder, home)))
        _reset(lab, folder)
        best["theirs"] = min(best["theirs"], _timed(theirs.apply))
    return Figure(
        name=f"apply {_APPLIED} nodes, built-in provider through stackyard",
        measured_s=best["ours"],
        floor_name="`tofu plan` and `tofu apply` with bpg/proxmox",
        floor_s=best["theirs"],
        aim_ratio=0.5,
    )


class _Plain:
    """OpenTofu with bpg's provider in a copy of the generated folder, with a state of its own."""

    def __init__(self, folder: Path, engine: Path, settings: Path, token: str) -> None:
        token_id, _, secret = token.partition("=")
        self._folder, self._engine = folder.parent / "plain", engine
        self._folder.mkdir()
        for path in (folder / "infrastructure/tofu").iterdir():
            if path.name != "backend.tf" and path.suffix in (".tf", ".tfvars"):
                (self._folder / path.name).write_bytes(path.read_bytes())
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent),
            "TF_CLI_CONFIG_FILE": str(settings),
            "TF_VAR_proxmox_api_token_id": token_id,
            "TF_VAR_proxmox_api_token_secret": secret,
        }

    def prepare(self) -> None:
        self._tofu("init", "-input=false")

    def apply(self) -> None:
        for path in self._folder.glob("*.tfstate*"):
            path.unlink()
        self._tofu("plan", "-input=false", "-out=tfplan")
        self._tofu("apply", "-input=false", "tfplan")

    def _tofu(self, *words: str) -> None:
        _check([str(self._engine), *words], cwd=self._folder, env=self._env)


def _apply(folder: Path, home: Path) -> None:
    _run(folder, home, "apply", "cluster:kubernetes", "--yes")


def _reset(lab: Mapping[str, Any], folder: Path) -> None:
    """Empty the lab, and forget the state that stackyard has of it; the factory knows the schematic."""
    _check([sys.executable, "-m", "stackyard", "lab", "reset", "--name", str(lab["name"])], env=environment())
    content = b"customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"
    place = urllib.parse.urlsplit(str(lab["factory_url"]))
    connection = http.client.HTTPConnection(place.netloc, timeout=30)
    connection.request("POST", "/schematics", content)
    connection.getresponse().read()
    connection.close()
    for name in ("state", "journal"):
        _check(["rm", "-rf", str(folder / ".stackyard" / name)])


# --- Programs


def _make_cluster(home: Path, *options: str) -> Path:
    folder = home / "cluster"
    folder.mkdir()
    _check(["git", "init", "--quiet", str(folder)])
    _run(folder, home, "cluster", "init", *options)
    return folder


def _number(path: Path) -> None:
    """Give every VM its number, so that both ways ask for the same."""
    path.write_text(path.read_text().replace("    # vm_id:", "    vm_id:"))


def _run(folder: Path, home: Path, *words: str) -> None:
    env = {**environment(), "XDG_CONFIG_HOME": str(home / "config")}
    _check([sys.executable, "-m", "stackyard", *words], cwd=folder, env=env)


def _check(argv: list[str], **options: Any) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    if ended.returncode:
        raise RuntimeError(f"{argv}\n{ended.stdout}\n{ended.stderr}")


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
