"""A delegation whose outer run, inner run or connection dies: the same command again ends well, once."""

from __future__ import annotations

import contextlib
import enum
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.forking import Forked
from tests.support.inner_machine import INNER, InnerMachine, Outer, inner_machine
from tests.support.kill_moments import Killer, Moment, changes_something, choose_some
from tests.support.operating import Ground, guest, laid_out
from tests.support.path_faults import Spot, spots_of
from tests.support.path_kills import children_of
from tests.support.path_runs import WatchedJournal, control, watch_calls
from tests.support.processes import Watched
from tests.support.site_store import keys_in

from stackyard.clients.objects.scoped import ScopedObjects
from stackyard.operator.record import RunState
from stackyard.operator.record_store import decode_record
from stackyard.path.target import Target
from stackyard.sources.manifest import model as manifest_model
from stackyard.sources.store import ChosenStore
from stackyard.state import StateService, layout
from stackyard.state.inside import read_view

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

FIRST = 2500
# What the inner operator calls the part of the manifest that is its own.
SUBTREE = f"{INNER}{manifest_model.SUBTREE}"
MAKES_VM = Spot(method="POST", path="/nodes/pve1/qemu", nth=1)
STARTS_VM = Spot(method="POST", path=f"/nodes/pve1/qemu/{FIRST}/status/start", nth=1)
_CREATES = ("qmcreate", "vzcreate")


class Victim(enum.StrEnum):
    """What dies."""

    OUTER = "the outer run"
    INNER = "the inner run"
    CONNECTION = "the connection"


class Nested:
    """An outer run in a process of its own, and an inner one behind real SSH that makes guests in a lab."""

    def __init__(self, ground: Ground, machine: InnerMachine, folder: Path) -> None:
        self.ground = ground
        self.machine = machine
        self.journal: WatchedJournal = watch_calls(ground.yard.running)
        self.killer = Killer(ground.yard.running, self.journal)
        self.said = folder / "said"
        nodes = [guest("one", FIRST), guest("two", FIRST + 1)]
        host = {"name": INNER, "type": "pve", "cores": 4, "memory": 8192, "disk": 64, "image": "debian-12"}
        document = {
            "schema_version": 2,
            "name": "deep",
            "nodes": [host, *({**node, "parent": INNER} for node in nodes)],
            "settings": {"verify_ssh": False},
        }
        self.outer = Outer(
            site=str(ground.yard.folder),
            host="lab",
            inner=machine.host(folder),
            text=json.dumps(document),
            runs_on="lab",
            store=str(folder / "outer"),
        )

    def begin(self) -> None:
        """Make the lab and the site of the inner host as they were."""
        self.killer.quicken()
        control(self.ground.yard.running, "reset")
        shutil.rmtree(self.outer.store, ignore_errors=True)
        self.machine.started.clear()

    def moments(self) -> list[tuple[Spot, Moment]]:
        """Run the command without a kill; return every moment of every call that changes something."""
        self.begin()
        first = self.journal.count
        status, said = self.run()
        assert status == 0, said
        spots = [spot for spot in spots_of(self.journal.entries(first)) if changes_something(spot)]
        when = (Moment.NOT_SENT, Moment.AT_WORK, Moment.DONE)
        # A file is seen when it was written, and not before.
        return [
            (spot, moment)
            for spot in spots
            for moment in when
            if spot.method != "SFTP" or moment is Moment.DONE
        ]

    def run(self) -> tuple[int, str]:
        """Run the command to its end."""
        program = self.outer.begin(self.said, self.ground.env)
        return program.wait(), self.said.read_text()

    def kill(self, victim: Victim, spot: Spot, moment: Moment) -> tuple[int, str]:
        """Run the command, let something die at a moment of a call, and wait for the command's end."""
        program: Forked = self.outer.begin(self.said, self.ground.env)
        engines: list[int] = []

        def strike() -> None:
            inner = self.machine.started[-1]
            engines.extend(children_of(inner.pid, "tofu"))
            match victim:
                case Victim.OUTER:
                    program.kill()
                case Victim.INNER:
                    inner.kill()
                case Victim.CONNECTION:
                    self.machine.cut()

        with self.killer.armed(spot, moment, strike):
            status = program.wait()
        assert self.killer.has_struck
        for pid in engines:
            with Watched(pid) as engine:
                assert engine.has_ended(), f"the engine {pid} lives on"
        self.killer.quicken()
        return status, self.said.read_text()

    def check(self) -> None:
        """Run the command once more: everything is there once, and nothing is left of the one that died."""
        status, said = self.run()
        assert status == 0, said
        assert {node["status"] for node in json.loads(said)["nodes"]} == {"completed"}
        found = self.ground.guests(above=FIRST, below=FIRST + 10)
        assert found == {FIRST: "one", FIRST + 1: "two"}
        assert self.made() == {FIRST: 1, FIRST + 1: 1}
        self._check_store(len(found))
        for inner in self.machine.started:
            with Watched(inner.pid) as process:
                assert process.has_ended(), f"the inner run {inner.pid} lives on"

    def _check_store(self, guests: int) -> None:
        """Find everything that the inner runs left with the outer run, and nothing with the inner host."""
        assert keys_in(self.ground.yard.folder / ".stackyard", "heads/") == []
        state = Target(kind="manifest", name=SUBTREE, node="lab").state_name
        with contextlib.closing(ChosenStore(base=Path(self.outer.store)).read()) as objects:
            inner = ScopedObjects(objects, layout.inner("manifest/deep/lab", INNER))
            content = StateService(inner).contents.read(state)
            assert content is not None
            kept = [address for address in read_view(content.body.data).instances if "_vm." in address]
            assert len(kept) == guests, kept
            assert inner.list("journal/") == ()
            assert StateService(inner).head(state).lock is None
            stored = inner.get(layout.operator(state))
            assert stored is not None
            assert decode_record(stored.data, "record").state is RunState.DONE

    def made(self) -> dict[int, int]:
        """Return how many guests were made for each id."""
        found: dict[int, int] = {}
        world = self.ground.yard.running.world
        for entry in self.journal.entries():
            parts = (entry.result or "").split(":")
            if len(parts) > 7 and parts[5] in _CREATES:
                is_well = (world.tasks.get(entry.result or "") or {}).get("status") == "OK"
                found[int(parts[6])] = found.get(int(parts[6]), 0) + is_well
        return found


@pytest.fixture
def nested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nested]:
    with laid_out(tmp_path) as ground, contextlib.ExitStack() as stack:
        ground.enter(monkeypatch)
        machine = stack.enter_context(inner_machine(site=ground.yard.folder, env=ground.env))
        yield Nested(ground, machine, tmp_path)


def test_the_same_command_ends_well_after_the_outer_run_was_killed(nested: Nested) -> None:
    status, _ = nested.kill(Victim.OUTER, MAKES_VM, Moment.AT_WORK)
    assert status == -signal.SIGKILL
    nested.check()


@pytest.mark.parametrize("victim", [Victim.INNER, pytest.param(Victim.CONNECTION, marks=pytest.mark.soak)])
def test_an_outer_run_outlives_the_inner_one_and_the_connection(nested: Nested, victim: Victim) -> None:
    status, said = nested.kill(victim, MAKES_VM, Moment.AT_WORK)
    assert status == 0, said
    assert len(nested.machine.started) == 2, "it connected again and ran the verb again"
    nested.check()


# How many moments of each victim a soak run takes.
SOAK_KILLS = 5


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", Victim)
def test_the_same_command_ends_well_wherever_it_was_cut(nested: Nested, victim: Victim) -> None:
    moments = nested.moments()
    struck, problems = 0, list[str]()
    for spot, moment in choose_some(moments, SOAK_KILLS):
        nested.begin()
        try:
            status, said = nested.kill(victim, spot, moment)
            struck += 1
            assert (status == 0) is (victim is not Victim.OUTER), said
            nested.check()
        except AssertionError as err:
            problems.append(f"{moment} at {spot}: {err}")
    sys.stdout.write(f"\n{victim}: {struck} of {len(moments)} moments, {len(problems)} not completed\n")
    sys.stdout.writelines(f"  {problem}\n" for problem in problems)
    assert problems == []
    assert struck
