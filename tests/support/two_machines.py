"""Two machines that share one site and one store: a checkout and a home for each, one lab for both."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import other_machine
from tests.support.cli import LONGEST_S, Ended
from tests.support.engine import real_engine
from tests.support.forking import Forked, fork_program, run_forked
from tests.support.path import Yard, make_yard
from tests.support.path_kills import children_of
from tests.support.path_runs import GUEST_TYPES, WatchedJournal, watch_calls
from tests.support.postgres import PASSWORD, new_schema, require_postgres
from tests.support.processes import Watched
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, new_prefix, require_seaweed
from tests.support.state_process import StateProcess, start_service

from pvelab.faults.latency import Work
from pvelab.server.journal import JournalEntry
from stackyard import lab
from stackyard.clients.objects import Objects, open_objects
from stackyard.clients.objects.sealed import make_master_key
from stackyard.engine.version import Flavour
from stackyard.state import StateService

__all__ = ["KINDS", "Machine", "SharedStore", "TwoMachines", "on_kind", "share_store", "two_machines"]

KINDS = ("postgresql", "s3", "https")


def on_kind(usual: str) -> pytest.MarkDecorator:
    """Run a test on one kind of store; on the others, which take their time, in the long runs."""
    others = [pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS if kind != usual]
    return pytest.mark.parametrize("pair", [usual, *others], indirect=True)


_HOMES = {
    "HOME": ".",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_RUNTIME_DIR": ".run",
}
_CREATES = ("qmcreate", "qmclone", "vzcreate", "vzclone")


@dataclass(frozen=True, kw_only=True)
class SharedStore:
    """A store that both machines reach, and what they need in the environment for that."""

    kind: str
    address: str
    env: dict[str, str]
    service: StateProcess | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[Objects]:
        """Open it in the test itself."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.env.items():
                patch.setenv(name, value)
            with contextlib.closing(open_objects(self.address)) as objects:
                yield objects


@contextlib.contextmanager
def share_store(kind: str, folder: Path) -> Iterator[SharedStore]:
    """Have an empty store of a kind; skip the test where its server cannot be had."""
    if kind == "sqlite":
        yield SharedStore(kind=kind, address="", env={})
    elif kind == "postgresql":
        env = {"PGPASSWORD": PASSWORD}
        yield SharedStore(kind=kind, address=require_postgres().address(new_schema()), env=env)
    elif kind == "s3":
        address = require_seaweed().address(new_prefix())
        env = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        yield SharedStore(kind=kind, address=address, env=env)
    else:
        with _serve(folder) as service:
            address = f"{service.url}?fingerprint={service.ready['fingerprint']}"
            env = {"STACKYARD_STORE_TOKEN": service.ready["password"]}
            yield SharedStore(kind=kind, address=address, env=env, service=service)


@contextlib.contextmanager
def _serve(folder: Path) -> Iterator[StateProcess]:
    """Run `stackyard state serve` in a process of its own, over SQLite and with TLS."""
    environment = {"XDG_DATA_HOME": str(folder / "service home")}
    service = asyncio.run(start_service(data=folder / "service", environment=environment))
    try:
        yield service
    finally:
        asyncio.run(service.stop())


@dataclass(kw_only=True)
class Machine(Yard):
    """A checkout of the site and the home of its user; the program believes to be on a host of this name."""

    name: str
    store: SharedStore

    @property
    def base(self) -> Path:
        return self.folder / ".stackyard"

    def run(self, *arguments: str, status: int | None = 0) -> Ended:
        """Run the program on this machine; check how it ends, unless that is left open."""
        env = {**os.environ, **self.env}
        code, out, err = run_forked(
            arguments, cwd=self.folder, env=env, entry=other_machine.ENTRY, timeout_s=LONGEST_S
        )
        ended = Ended(code, out.decode(), err.decode())
        if status is not None:
            assert ended.status == status, f"{self.name}: {arguments}\n{ended.stdout}\n{ended.stderr}"
        return ended

    @contextlib.contextmanager
    def start(self, *arguments: str) -> Iterator[Started]:
        """Begin a run that goes on beside the test; it is killed at the end of the block if it still runs."""
        path = self.folder.parent / f"{self.name}-{os.urandom(4).hex()}.out"
        with open(os.devnull, "rb") as nothing, path.open("wb") as out:
            streams = (nothing.fileno(), out.fileno(), out.fileno())
            env = {**os.environ, **self.env}
            forked = fork_program(
                arguments, streams=streams, cwd=self.folder, env=env, entry=other_machine.ENTRY
            )
        started = Started(forked, path)
        try:
            yield started
        finally:
            if started.status is None:
                started.kill()

    def with_env(self, **env: str) -> Machine:
        """Return the same with more in the environment of the program."""
        return replace(self, env={**self.env, **env})

    def forget(self) -> None:
        """Lose everything that runs left in the checkout."""
        shutil.rmtree(self.base, ignore_errors=True)

    def in_state(self, state: str = "env/t/lab") -> list[int]:
        """Return the vm ids of the guests in a state."""
        with self.store.open() as objects:
            return guests_in(objects, state)

    def keys(self, prefix: str) -> list[str]:
        """Return the names of objects in the store."""
        with self.store.open() as objects:
            return [one.key for one in objects.list(prefix)]


@dataclass
class Started:
    """A run beside the test."""

    forked: Forked
    path: Path
    status: int | None = None

    def wait(self) -> int:
        """Wait for its end, and for that of the engines that it left; return its status."""
        if self.status is None:
            self.status = self.forked.wait()
        return self.status

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end for so long, and tell whether it came."""
        if self.status is None and select.select([self.forked.told], [], [], seconds)[0]:
            self.wait()
        return self.status is not None

    def kill(self) -> None:
        """Kill it as a power cut does, and wait for the end of the engines that it leaves."""
        orphans = list(children_of(self.forked.pid, "tofu"))
        with contextlib.suppress(ProcessLookupError):
            self.forked.kill()
        self.wait()
        for pid in orphans:
            with Watched(pid) as engine:
                assert engine.has_ended(), f"the engine {pid} lives on"

    @property
    def output(self) -> str:
        return self.path.read_text(errors="replace")


def guests_in(objects: Objects, state: str) -> list[int]:
    """Return the vm ids of the guests in a state."""
    content = StateService(objects).contents.read(state)
    resources = yaml.safe_load(content.body.data)["resources"] if content is not None else []
    return sorted(
        int(instance["attributes"]["vm_id"])
        for resource in resources
        if resource["mode"] == "managed" and resource["type"] in GUEST_TYPES
        for instance in resource["instances"]
    )


@dataclass(kw_only=True)
class TwoMachines:
    """Both machines, their store and their lab.

    Attributes:
        first: One machine.
        second: The other.
        store: What they share.
        running: The lab.
        journal: The calls that it got.
    """

    first: Machine
    second: Machine
    store: SharedStore
    running: lab.Running
    journal: WatchedJournal
    key_file: Path

    def write_env(self, name: str, guests: list[dict[str, Any]]) -> None:
        """Change the input on both, as a commit that both have pulled."""
        for machine in (self.first, self.second):
            machine.write_env(name, guests)

    def slow_down(self, seconds: float) -> None:
        """Let the lab take its time for work on guests; none with zero."""
        slow = dict.fromkeys((Work.CREATE, Work.CLONE, Work.START), seconds) if seconds else {}
        self.running.on_loop(lambda: setattr(self.running.world.latency, "overrides_s", slow))

    def host_of(self, machine: Machine) -> str:
        """Return the host that the program believes to be on."""
        return machine.env.get(other_machine.NAME_VARIABLE) or socket.gethostname()

    def with_stores(self, *more: SharedStore) -> tuple[Machine, Machine]:
        """Return both machines with what they need for other stores too."""
        env = {name: value for store in more for name, value in store.env.items()}
        return self.first.with_env(**env), self.second.with_env(**env)

    def choose(self, store: SharedStore) -> None:
        """Name another store in the input of both."""
        for machine in (self.first, self.second):
            _choose(machine.folder, store.address)

    def creations(self) -> dict[int, int]:
        """Return how often a guest of each vm id was created."""
        found: dict[int, int] = {}
        for entry in self.running.world.journal.entries():
            parts = (entry.result or "").split(":")
            if len(parts) > 7 and parts[5] in _CREATES:
                task = self.running.world.tasks.get(entry.result or "") or {}
                found[int(parts[6])] = found.get(int(parts[6]), 0) + (task.get("status") == "OK")
        return found

    def kill_at(self, machine: Machine, nth: int, *arguments: str) -> bool:
        """Run, and kill at the nth call of the lab from now; tell whether it came so far."""
        first = self.journal.count
        with machine.start(*arguments) as started:

            def saw(entry: JournalEntry) -> None:
                if entry.number == first + nth:
                    with contextlib.suppress(ProcessLookupError):
                        orphans.extend(children_of(started.forked.pid, "tofu"))
                        started.forked.kill()

            orphans: list[int] = []
            self.journal.on_call = saw
            try:
                status = started.wait()
            finally:
                self.journal.on_call = None
        for pid in orphans:
            with Watched(pid) as engine:
                assert engine.has_ended(), f"the engine {pid} lives on"
        return status == -signal.SIGKILL


@functools.cache
def _are_apart() -> bool:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.support.other_machine import *; exit(not can_be_apart())"],
        cwd=Path(__file__).parents[2],
        check=False,
    )
    return done.returncode == 0


@contextlib.contextmanager
def two_machines(
    store: SharedStore, folder: Path, *, are_apart: bool = True, **options: Any
) -> Iterator[TwoMachines]:
    """Have two machines for one lab.

    Args:
        store: What they share.
        folder: Where their checkouts and homes are.
        are_apart: Whether each takes the other for another host, as far as this system allows it.
        options: Of the lab.
    """
    engine = str(real_engine(Flavour.TOFU).path)
    key_file = folder / "site.key"
    key_file.write_text(make_master_key())
    key_file.chmod(0o600)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0, **options) as running:
        journal = watch_calls(running)
        yard = make_yard(running, folder / "alpha" / "site", STACKYARD_TOFU=engine)
        _choose(yard.folder, store.address)
        checkout = folder / "beta" / "home lab" / "checkout"
        # What git ignores stays: the first machine alone has the SSH key that was made with the site.
        shutil.copytree(yard.folder, checkout, ignore=shutil.ignore_patterns(".stackyard"))
        made = [
            Machine(
                folder=checkout,
                running=running,
                env={
                    **yard.env,
                    **store.env,
                    **_make_home(folder / name / "home"),
                    "STACKYARD_SITE_KEY_FILE": str(key_file),
                    **({other_machine.NAME_VARIABLE: name} if are_apart and _are_apart() else {}),
                },
                name=name,
                store=store,
            )
            for name, checkout in (("alpha", yard.folder), ("beta", checkout))
        ]
        yield TwoMachines(
            first=made[0], second=made[1], store=store, running=running, journal=journal, key_file=key_file
        )


def _choose(site: Path, address: str) -> None:
    """Name the store in the input."""
    path = site / "site.yaml"
    document = yaml.safe_load(path.read_text()) if path.exists() else {}
    if address:
        path.write_text(yaml.safe_dump({**(document or {}), "store": address}, sort_keys=False))


def _make_home(home: Path) -> dict[str, str]:
    """Make a home that has the key of the secrets, as a user gives it to each of his machines."""
    env = {name: str(home / below) for name, below in _HOMES.items()}
    for value in env.values():
        Path(value).mkdir(parents=True, exist_ok=True, mode=0o700)
    keys = Path(os.environ["XDG_CONFIG_HOME"]) / "sops"
    if keys.exists():
        shutil.copytree(keys, Path(env["XDG_CONFIG_HOME"]) / "sops")
    return env
