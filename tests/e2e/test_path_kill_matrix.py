"""`stackyard apply` killed with its engine at any call: one more apply completes every guest, once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.forking import fork_program
from tests.support.kill_moments import Killer, Moment, changes_something, choose_some
from tests.support.path import make_yard
from tests.support.path_faults import Spot, spots_of
from tests.support.path_kills import children_of
from tests.support.path_runs import DNS, WEB, Rig, WatchedJournal, watch_calls
from tests.support.processes import Watched

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

GIB = 2**30
# How many calls of each moment a soak run takes.
SOAK_KILLS = 10
# An image that the provider imports on the node itself, as the images that a site has without naming any.
DB: dict[str, Any] = {"name": "db", "vmid": 502, "preset": "vm-xsmall", "image": "local:iso/a.img"}
MAKES_VM = Spot(method="POST", path="/nodes/pve1/qemu", nth=1)
MAKES_CONTAINER = Spot(method="POST", path="/nodes/pve1/lxc", nth=1)
STARTS_VM = Spot(method="POST", path="/nodes/pve1/qemu/500/status/start", nth=1)
SHORT = [
    (DB, MAKES_VM, Moment.AT_WORK),
    (WEB, MAKES_VM, Moment.FAILS),
    (WEB, STARTS_VM, Moment.DONE),
    (DNS, MAKES_CONTAINER, Moment.AT_WORK),
]


class Matrix:
    """One target that is made from nothing, killed and made again."""

    def __init__(self, running: lab.Running, rig: Rig, journal: WatchedJournal) -> None:
        self.running = running
        self.rig = rig
        self.journal = journal
        self.killer = Killer(running, journal)
        self.begins_task: set[Spot] = set()

    def begin(self) -> None:
        """Make the lab and the state new, with an image on the node."""
        self.killer.quicken()
        self.rig.begin()
        self.running.on_loop(self._add_image)

    def run(self) -> list[Spot]:
        """Apply without a kill; return the calls that it took."""
        self.begin()
        first = self.journal.count
        assert self.rig.apply() is None
        entries = self.journal.entries(first)
        spots = spots_of(entries)
        self.begins_task = {spot for spot, entry in zip(spots, entries, strict=True) if entry.result}
        return spots

    def kill(self, spot: Spot, moment: Moment) -> bool:
        """Apply, kill the program and its engine at a moment of a call; tell whether that call came."""
        self.begin()
        yard, engines = self.rig.yard, list[int]()
        with open(os.devnull, "r+b") as nothing:
            number = nothing.fileno()
            program = fork_program(
                ("apply", "t", "--no-verify"),
                streams=(number, number, number),
                cwd=yard.folder,
                env={**os.environ, **yard.env},
            )

        def kill() -> None:
            engines.extend(children_of(program.pid, "tofu"))
            for pid in engines:
                os.kill(pid, signal.SIGKILL)
            program.kill()

        with self.killer.armed(spot, moment, kill):
            status = program.wait()
        for pid in engines:
            with Watched(pid) as engine:
                assert engine.has_ended(), f"the engine {pid} lives on"
        assert (status == -signal.SIGKILL) == self.killer.has_struck, status
        return self.killer.has_struck

    def settle(self) -> None:
        """Apply once more: every guest is there once, with its image, its size and nothing left to do."""
        self.rig.settle()
        made = self.rig.creations()
        assert all(count <= 1 for count in made.values()), made
        for vm_id, guest in self.rig.yard.guests().items():
            if guest["type"] == "qemu":
                self._check_disk(vm_id, str(guest["config"]["scsi0"]))

    def _check_disk(self, vm_id: int, drive: str) -> None:
        volumes = self.running.on_loop(lambda: dict(self.running.world.store.items("volumes")))
        owned = [one for one in volumes.values() if f":vm-{vm_id}-disk-" in one["volid"]]
        assert [one["volid"] for one in owned] == [drive.partition(",")[0]]
        assert owned[0]["size"] == 8 * GIB
        assert owned[0].get("image"), owned

    def _add_image(self) -> None:
        with self.running.world.store.transaction():
            self.running.world.volumes.add(
                "local:iso/a.img", "pve1", 600 * 2**20, content="iso", format="qcow2", virtual_size=3 * GIB
            )


@pytest.fixture
def matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Matrix]:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        journal = watch_calls(running)
        yard = make_yard(running, tmp_path / "site")
        yard.write_env("t", request.param)
        yield Matrix(running, Rig(yard=yard), journal)


@pytest.mark.parametrize(
    ("matrix", "spot", "moment"),
    [
        pytest.param([guest], spot, moment, id=f"{guest['name']} {moment} {spot}")
        for guest, spot, moment in SHORT
    ],
    indirect=["matrix"],
)
def test_one_more_apply_completes_the_guest(matrix: Matrix, spot: Spot, moment: Moment) -> None:
    assert matrix.kill(spot, moment)
    matrix.settle()


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("matrix", [[WEB, DNS, DB]], indirect=True, ids=["all"])
def test_one_more_apply_completes_the_guests_wherever_the_last_was_killed(
    matrix: Matrix, moment: Moment
) -> None:
    spots, problems, killed = matrix.run(), list[str](), 0
    if moment is Moment.FAILS:
        spots = [spot for spot in spots if spot in matrix.begins_task]
    elif moment is Moment.AT_WORK:
        spots = [spot for spot in spots if changes_something(spot)]
    for spot in choose_some(spots, SOAK_KILLS):
        try:
            if matrix.kill(spot, moment):
                killed += 1
                matrix.settle()
        except AssertionError as err:
            problems.append(f"{spot}: {err}")
            sys.stdout.write(f"FAILED {problems[-1]}\n")
    sys.stdout.write(f"\n{moment}: {len(spots)} calls, {killed} kills, {len(problems)} not completed\n")
    assert problems == []
    assert killed
