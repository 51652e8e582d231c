"""The built-in provider in a process of its own, killed while it makes something, and what it has to come to.

The process is asked with one JSON text: how a lab is reached, where the journal is, and what to make.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.forking import fork_program
from tests.support.kill_moments import Killer, Moment
from tests.support.lab_consistency import Gone, problems_in
from tests.support.path_faults import Spot, spots_of
from tests.support.path_runs import WatchedJournal, control
from tests.support.provider_bench import bench

from stackyard import lab

__all__ = ["Making", "Sort", "main"]

# Another one is chosen each time, or it only says when.
_CHOSEN = [
    (re.compile(r"(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"), "MAC"),
    (re.compile(r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b(vm|base|subvol|basevol)-(\d+)-disk-\d+"), r"\1-\2-disk"),
    (re.compile(r"ctime=\d+"), "ctime"),
    (re.compile(r"^volume="), ""),
    (re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL), r"\1"),
]
# How it came about, not what there is.
_IGNORED = (
    "tasks",
    "log",
    "cluster_log",
    "secrets",
    "faults",
    "leases",
    "lease_numbers",
    "ha",
    "backup_runs",
)
_MOMENTARY = ("digest", "ctime", "starttime", "pid", "uptime", "time", "mtime", "started", "cloudinit")


@dataclass(frozen=True, kw_only=True)
class Sort:
    """What is made: resources one after the other, the last of which is looked at."""

    steps: tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True, kw_only=True)
class Access:
    """How a lab is reached from another process; enough of one for a bench."""

    url: str
    api_token: str
    fingerprint: str
    password: str
    ssh_ports: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class Making:
    """Makes one sort of things in a lab, again and again from its snapshot `begin`."""

    running: lab.Running
    journal: WatchedJournal
    folder: Path
    sort: Sort
    killer: Killer = field(init=False)
    # The calls that begin work which can fail after they were answered.
    begins_task: set[Spot] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.killer = Killer(self.running, self.journal)

    def begin(self) -> None:
        """Make the lab what it was; forget what was being made."""
        self.killer.quicken()
        control(self.running, "snapshots/begin/restore")
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self) -> list[Spot]:
        """Make it without a kill; return the calls that it took."""
        self.begin()
        first = self.journal.count
        status = self._process()
        assert status == 0, self._said()
        entries = self.journal.entries(first)
        spots = spots_of(entries)
        self.begins_task = {spot for spot, entry in zip(spots, entries, strict=True) if entry.result}
        return spots

    def kill(self, spot: Spot, moment: Moment) -> bool:
        """Make it and die at a moment of a call; tell whether that call came."""
        self.begin()
        status = self._process(spot, moment)
        assert (status == -signal.SIGKILL) == self.killer.has_struck, self._said()
        return self.killer.has_struck

    def settle(self) -> None:
        """Make it once more, in this process: it is there once, whole, and nothing is left to do."""

        async def again() -> None:
            async with bench(self.running, self.folder) as it:
                for type_name, config in self.sort.steps:
                    await it.apply(type_name, **config)
                for type_name, config in self.sort.steps:
                    assert await it.is_settled(type_name, **config), type_name
                await it.session.journal.confirm_all()
                assert it.session.journal.entries == ()

        asyncio.run(again())
        assert list(self.folder.glob("*.json")) == []
        found = self.running.on_loop(lambda: problems_in(self.running.world, Gone(leftovers=False)))
        assert found == []

    def picture(self) -> dict[str, Any]:
        """Return all that counts of what the lab has."""
        dump = self.running.on_loop(lambda: self.running.world.store.dump())
        return {name: _plain(list(rows.items())) for name, rows in dump.items() if name not in _IGNORED}

    def _said(self) -> str:
        return (self.folder.parent / "said").read_text()

    def _process(self, spot: Spot | None = None, moment: Moment = Moment.DONE) -> int:
        access = {
            name: getattr(self.running, name) for name in ("url", "api_token", "fingerprint", "password")
        }
        task = {
            "access": {**access, "ssh_ports": dict(self.running.ssh_ports)},
            "journal": str(self.folder),
            "steps": self.sort.steps,
        }
        with (self.folder.parent / "said").open("w+b") as said, open(os.devnull, "rb") as nothing:
            program = fork_program(
                (json.dumps(task),),
                streams=(nothing.fileno(), said.fileno(), said.fileno()),
                entry=f"{__name__}:main",
            )
        if spot is None:
            return program.wait()
        with self.killer.armed(spot, moment, program.kill):
            return program.wait()


def _plain(value: Any) -> Any:
    """Return a value without what is chosen or measured each time; the order of a list does not count."""
    if isinstance(value, dict):
        return {_text(key): _plain(one) for key, one in value.items() if key not in _MOMENTARY}
    if isinstance(value, list | tuple):
        return sorted((_plain(one) for one in value), key=json.dumps)
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    for pattern, name in _CHOSEN:
        value = pattern.sub(name, value)
    return value


def main() -> None:
    """Make what the argument says."""
    task = json.loads(sys.argv[1])

    async def make() -> None:
        access: Any = Access(**task["access"])
        async with bench(access, Path(task["journal"])) as it:
            for type_name, config in task["steps"]:
                await it.apply(type_name, **config)

    asyncio.run(make())
