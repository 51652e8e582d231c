"""Runs of the operator that are stopped, killed or in each other's way: they converge, and make all once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM
from tests.support.operating import Ground, Played, guest, laid_out, manifest_text
from tests.support.path_kills import children_of
from tests.support.path_runs import WatchedJournal, watch_calls
from tests.support.processes import Watched

from pvelab.server.journal import JournalEntry
from stackyard.base import events
from stackyard.clients.objects import open_objects
from stackyard.operator.outcome import RunOutcome, Verb
from stackyard.operator.record import RunState
from stackyard.operator.record_store import RunBusyError
from stackyard.operator.request import VerbRequest
from stackyard.operator.verbs import run_verb
from stackyard.path.target import Target
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

_CREATES = ("qmcreate", "vzcreate")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ground, WatchedJournal]]:
    with laid_out(tmp_path_factory.mktemp("operator")) as made:
        yield made, watch_calls(made.yard.running)


@pytest.fixture
def ground(shared: tuple[Ground, WatchedJournal], monkeypatch: pytest.MonkeyPatch) -> Ground:
    return shared[0].enter(monkeypatch)


@pytest.fixture
def journal(shared: tuple[Ground, WatchedJournal]) -> WatchedJournal:
    return shared[1]


def made(journal: WatchedJournal, *vm_ids: int) -> list[int]:
    """Return how often each guest was made."""
    results = [(entry.result or "").split(":") for entry in journal.entries()]
    found = [int(parts[6]) for parts in results if len(parts) > 7 and parts[5] in _CREATES]
    return [found.count(vm_id) for vm_id in vm_ids]


def test_ctrl_c_stops_the_work_in_guests_and_leaves_a_record_that_says_so(
    ground: Ground, journal: WatchedJournal
) -> None:
    text, ends = manifest_text("cut", guest("one", 2000), guest("two", 2001)), list[str]()

    async def scenario() -> None:
        both = asyncio.Barrier(3)

        async def work(name: str) -> None:
            await both.wait()
            try:
                await asyncio.Event().wait()
            finally:
                ends.append(name)

        run = asyncio.create_task(ground.running("create", text, Played(on_configure=work)))
        await both.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(scenario())
    assert sorted(ends) == ["one", "two"], "what runs in guests is stopped too"
    record = ground.record("cut")
    assert (record.state, record.error) == (RunState.STOPPED, "The run was stopped on request.")
    assert {node.created for node in record.nodes} == {True}
    assert ground.run("create", text).success
    assert made(journal, 2000, 2001) == [1, 1]


def test_ctrl_c_while_guests_are_made_is_gone_on_from(ground: Ground, journal: WatchedJournal) -> None:
    text = manifest_text("early", guest("one", 2010), guest("two", 2011))

    async def scenario() -> None:
        def emit(event: events.Event) -> None:
            if isinstance(event, events.ResourceApplied) and event.address.endswith("_vm.one"):
                run.cancel()

        run = asyncio.create_task(ground.running("create", text, emit=emit))
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(scenario())
    assert ground.record("early").state is RunState.STOPPED
    assert ground.run("create", text).success
    assert ground.guests(above=2010, below=2020) == {2010: "one", 2011: "two"}
    assert made(journal, 2010, 2011) == [1, 1]


def test_a_test_that_is_stopped_takes_away_what_it_made(ground: Ground) -> None:
    text = manifest_text("tidy", guest("one", 2020))

    async def scenario() -> None:
        reached = asyncio.Event()

        async def work(name: str) -> None:
            del name
            reached.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(ground.running("test", text, Played(on_configure=work)))
        await reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(scenario())
    assert ground.guests(above=2020, below=2030) == {}
    assert ground.record("tidy").state is RunState.STOPPED


def test_a_second_run_of_the_same_manifest_on_the_same_host_names_the_first(ground: Ground) -> None:
    text = manifest_text("busy", guest("one", 2030))
    (ground.yard.folder / "busy.json").write_text(text)

    async def second() -> None:
        async with ground.book("busy").hold("`create` of process 1"):
            with pytest.raises(RunBusyError, match="`create` of process 1"):
                await asyncio.to_thread(ground.run, "create", text, lock_wait_s=0.0)
            line = ("create", "--manifest-file", "busy.json", "-H", "lab", "--lock-wait", "0")
            ended = await asyncio.to_thread(ground.yard.json, *line, status=75)
            assert ended["error"]["code"] == "E-OPERATOR-BUSY"

    asyncio.run(second())
    assert ground.guests(above=2030, below=2040) == {}


@pytest.mark.parametrize(
    ("moment", "then"),
    [
        ("qmcreate", "create"),
        ("qmstart", "destroy"),
        pytest.param("download", "create", marks=pytest.mark.soak),
        pytest.param("qmstart", "create", marks=pytest.mark.soak),
        pytest.param("qmcreate", "destroy", marks=pytest.mark.soak),
        pytest.param("qmcreate", "test", marks=pytest.mark.soak),
    ],
)
def test_a_killed_run_is_gone_on_from_and_nothing_is_made_twice_or_left(
    ground: Ground, journal: WatchedJournal, moment: str, then: str
) -> None:
    first = 2100 + 10 * ("download", "qmcreate", "qmstart").index(moment) + 100 * len(then)
    name = f"killed-{moment}-{then}"
    text = manifest_text(name, guest("one", first), guest("two", first + 1), verify_ssh=False)
    (ground.yard.folder / f"{name}.json").write_text(text)
    verb = "test" if then == "test" else "create"
    kill_at(ground, journal, moment, (verb, "--manifest-file", f"{name}.json"))
    assert ground.record(name).state is RunState.RUNNING, "a killed run does not say that it ended"
    is_begun = moment == "download" or bool(ground.guests(above=first, below=first + 10))
    assert is_begun, "it was killed with something made"
    outcome = ground.run(then, text)
    assert outcome.success, outcome
    assert outcome.orphans == ()
    left = {first: "one", first + 1: "two"} if then == "create" else {}
    assert ground.guests(above=first, below=first + 10) == left
    if then == "create":
        assert made(journal, first, first + 1) == [1, 1]
        assert ground.record(name).verb.value == "create"


def kill_at(ground: Ground, journal: WatchedJournal, moment: str, arguments: tuple[str, ...]) -> None:
    """Run the program and kill it when the lab has begun a task of a kind, before it answers."""
    program = subprocess.Popen(
        [*PROGRAM, *arguments, "-H", "lab", "--skip-preflight"],
        cwd=ground.yard.folder,
        env={**os.environ, **ground.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    orphans: list[int] = []

    def saw(entry: JournalEntry) -> None:
        if f":{moment}:" in (entry.result or "") and program.poll() is None and not orphans:
            orphans.extend(children_of(program.pid, "tofu"))
            program.kill()

    journal.on_call = saw
    try:
        program.wait()
    finally:
        journal.on_call = None
    assert program.returncode == -signal.SIGKILL
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError), Watched(pid) as engine:
            assert engine.has_ended(), f"the engine {pid} lives on"


def test_records_of_two_hosts_are_two(tmp_path: Path) -> None:
    with laid_out(tmp_path, "pve1", "pve2") as made, pytest.MonkeyPatch.context() as patch:
        ground = made.enter(patch)
        nodes = sorted(path.stem for path in (ground.yard.folder / "nodes").glob("*.yaml"))
        assert len(nodes) == 2
        here, there = nodes
        text = manifest_text("wide", guest("one", 2070), guest("two", 2071, host=there))
        outcome = ground.run("create", text, host=here)
        assert outcome.success, outcome
        assert {node.name: node.host for node in outcome.nodes} == {"one": here, "two": there}
        placed = {vm_id: one["node"] for vm_id, one in ground.yard.guests().items()}
        assert len(set(placed.values())) == 2
        assert [node.name for node in ground.record("wide", here).nodes] == ["one"]
        assert [node.name for node in ground.record("wide", there).nodes] == ["two"]
        assert ground.run("destroy", text, host=here).success
        assert ground.yard.guests() == {}


@pytest.mark.parametrize("source", ["name", "file"])
def test_a_create_that_waited_for_its_lock_makes_what_the_manifest_says_then(
    ground: Ground, journal: WatchedJournal, source: str
) -> None:
    manifest, first = f"queued-{source}", {"name": 2600, "file": 2610}[source]
    folder = ground.yard.folder
    path = folder / (f"manifests/{manifest}.yaml" if source == "name" else f"{manifest}.json")
    path.write_text(manifest_text(manifest, guest("one", first)))
    name = Target(kind="manifest", name=manifest, node="lab").state_name
    request = VerbRequest(
        name=manifest if source == "name" else None,
        file=str(path) if source == "file" else None,
        site=str(folder),
        host="lab",
        skip_preflight=True,
        lock_wait_s=120.0,
    )

    async def scenario(states: StateService, actor: Actor) -> RunOutcome:
        states.locks.lock(name, b'{"ID": "ours", "Operation": "apply", "Who": "me"}', actor)
        running = asyncio.create_task(run_verb(Verb.CREATE, request, guest_actions_for=Played().for_host))
        while not states.head(name).waiting:
            assert not running.done(), await running
            await asyncio.sleep(0.02)
        path.write_text(manifest_text(manifest, guest("one", first, memory=768), guest("two", first + 1)))
        states.locks.unlock(name, "ours", actor)
        return await running

    with contextlib.closing(open_objects(folder / ".stackyard" / "state")) as objects:
        outcome = asyncio.run(scenario(StateService(objects), Actor(principal="test")))
    assert outcome.success, outcome
    assert [node.name for node in outcome.nodes] == ["one", "two"]
    assert ground.guests(above=first, below=first + 10) == {first: "one", first + 1: "two"}
    assert str(ground.yard.guests()[first]["config"]["memory"]) == "768"
    assert made(journal, first, first + 1) == [1, 1]
