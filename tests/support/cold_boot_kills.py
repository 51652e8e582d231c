"""Cold boots that are killed at a point of their event stream, and what must be true of them afterwards."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cluster_repo import ClusterRepo
from tests.support.forking import fork_program
from tests.support.lab import proxmoxer_client
from tests.support.whole_boot import WholeBoot

from stackyard.path.clusters.keys import make_keyring
from stackyard.talosapi.messages import STAGES, pb
from stackyard.talosconfig.bundle_file import load_bundle

__all__ = ["APPLIED", "EVERY", "FINISHED", "STARTED", "WAITING", "KillPoint", "check_cold_boot", "kill_up"]

# Before a step has done anything, while it waits for what it did, and after it.
STARTED, WAITING, FINISHED = MOMENTS = ("step.started", "step.waiting", "step.finished")
# In the middle of an apply: the resource is being made, or is there and not yet in the state.
APPLIED = "resource.applied"
STEPS = (
    "datasets",
    *("configure k8s-0", "configure k8s-1", "etcd", "kubernetes", "health", "network", "nodes-ready"),
    *("secrets", "chart-agent", "flux", "sync", "reconciled"),
)
# The step `vms` is the path of every target: its plan, and its apply.
_IMAGES = ("images.register", "plan cluster:home", "apply cluster:home")
_VMS = tuple(f'proxmox_virtual_environment_vm.talos_node["k8s-{number}"]' for number in range(2))
_UP = ("cluster", "up", "--yes", "--events")


@dataclass(frozen=True)
class KillPoint:
    """The first event of a kind of a step, or the event of a phase of a resource.

    Attributes:
        moment: The type of the event.
        step: The step, or the address of the resource.
        phase: That of the resource.
    """

    moment: str
    step: str
    phase: str | None = None

    def __str__(self) -> str:
        words = (self.moment.rpartition(".")[2], self.step, self.phase or "")
        return re.sub(r"[^a-z0-9.]+", "-", " ".join(words)).strip("-")

    @property
    def is_certain(self) -> bool:
        """Whether every first boot comes to this point: nothing may be left to wait for."""
        return self.moment != WAITING

    def is_in(self, line: bytes) -> bool:
        """Return whether a line is this event."""
        event = json.loads(line)
        place = event.get("step") or event.get("address")
        return bool(event["type"] == self.moment and place == self.step and event.get("phase") == self.phase)


EVERY = tuple(
    [KillPoint(moment, step) for step in (*STEPS, *_IMAGES) for moment in MOMENTS]
    + [KillPoint(APPLIED, address, phase) for address in _VMS for phase in ("started", "done")]
)


def kill_up(repo: ClusterRepo, point: KillPoint) -> tuple[bool, bytes]:
    """Bring a cluster up and kill that run at a point; return whether it came to it, and what it wrote."""
    out, end = os.pipe()
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(), end, end)
        run = fork_program(_UP, streams=streams, cwd=repo.root, env={**os.environ, **repo.env})
    os.close(end)
    written, is_killed = b"", False
    with open(out, "rb") as events:
        for line in events:
            written += line
            if not is_killed and line.startswith(b"{") and point.is_in(line):
                run.kill()
                is_killed = True
    run.wait()
    return is_killed, written


def check_cold_boot(boot: WholeBoot, written: bytes) -> None:
    """Check a cluster after all runs: nothing happened twice, nothing is left to do, no secret is shown."""
    repo = boot.repo
    again = repo.run("cluster", "up", "--yes", "--json")
    assert again.document["has_changes"] is False, again.document
    assert len(repo.list_etcds()) == 1, "each accepted bootstrap forms one"
    assert count_installations(repo) == {101: 1, 102: 1}, "each accepted configuration installs once"
    vms = proxmoxer_client(repo.running).cluster.resources.get(type="vm")
    assert sorted(vm["name"] for vm in vms) == ["k8s-0", "k8s-1"]
    assert boot.list_datasets() == ["tank/home", "tank/home/volumes"]
    bundle = load_bundle(repo.root, make_keyring(repo.root))
    secrets = [*(value.encode() for value in bundle.values()), *boot.secrets]
    states = [repo.run("state", "show", name).stdout for name in list_states(repo)]
    assert states, "a cluster has a state"
    texts = {
        "events and logs": written,
        "output": f"{again.stdout}{again.stderr}".encode(),
        "state": "".join(states).encode(),
        **{str(path): path.read_bytes() for path in list_files(repo.root, boot.inputs)},
    }
    for place, text in texts.items():
        assert not any(secret in text for secret in secrets), f"a secret of the cluster is in {place}"


def list_states(repo: ClusterRepo) -> list[str]:
    return [row["name"] for row in repo.json("state", "list")["states"]]


def list_files(root: Path, inputs: tuple[str, ...]) -> list[Path]:
    """Return what runs left in the repository, its store among it, without what the user wrote."""
    found = [path for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.parts]
    return [path for path in found if str(path.relative_to(root)) not in inputs]


def count_installations(repo: ClusterRepo) -> dict[int, int]:
    """Return how often each machine began to install Talos, by its events."""
    found = Counter[int]()
    for vmid in (101, 102):
        machine: Any = repo.running.world.machines.talos(vmid)
        for event in tuple(machine.events._events):
            if event.data.type_url.endswith("MachineStatusEvent"):
                status = pb.MachineStatusEvent.FromString(event.data.value)
                found[vmid] += status.stage == STAGES.index("installing")
    return dict(found)
