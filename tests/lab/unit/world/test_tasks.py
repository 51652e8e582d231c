"""Tasks: UPIDs, logs, exit statuses, interruption, and what a crash leaves."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pvelab.faults.faults import FaultRule, Faults, Point, Strike
from pvelab.faults.latency import Latency, Work
from pvelab.server.problems import PveError
from pvelab.world.clock import LabClock
from pvelab.world.sqlite import SqliteDisk
from pvelab.world.store import Store
from pvelab.world.tasks import Task, Tasks, WorkFunction
from pvelab.world.upid import parse_upid


def make(store: Store | None = None, **latency_s: float) -> tuple[Tasks, LabClock, Faults]:
    clock, faults = LabClock(), Faults()
    latency = Latency(overrides_s={Work(name): seconds for name, seconds in latency_s.items()})
    return Tasks(store or Store(), clock, latency, faults), clock, faults


def start(tasks: Tasks, work: WorkFunction, kind: str = "qmstart") -> str:
    with tasks.store.transaction():
        return tasks.start("pve1", kind, "100", authid="root@pam", work=work)


def run(work: WorkFunction, prepare: Callable[[Tasks, Faults], None] | None = None) -> tuple[str, list[str]]:
    async def main() -> tuple[str, list[str]]:
        tasks, _, faults = make()
        if prepare:
            prepare(tasks, faults)
        upid = start(tasks, work)
        await tasks.settle()
        assert not tasks.is_running(upid)
        document = tasks.get(upid)
        assert document is not None
        return document["status"], tasks.lines(upid)

    return asyncio.run(main())


async def nothing(task: Task) -> None:
    task.log("done")


def test_work_without_latency_is_done_when_the_call_answers() -> None:
    assert run(nothing) == ("OK", ["done", "TASK OK"])


def test_warnings_are_counted() -> None:
    async def work(task: Task) -> None:
        task.warn("disk is odd")
        task.warn("net is odd")

    assert run(work) == ("WARNINGS: 2", ["WARN: disk is odd", "WARN: net is odd", "TASK WARNINGS: 2"])


def test_a_refusal_in_a_worker_ends_the_task_with_its_text() -> None:
    async def work(task: Task) -> None:
        raise PveError("VM is locked (backup)\nsecond line")

    assert run(work) == (
        "VM is locked (backup) second line",
        ["TASK ERROR: VM is locked (backup) second line"],
    )


def test_a_planned_failure_strikes_after_the_time_was_spent() -> None:
    async def work(task: Task) -> None:
        await task.spend(Work.CLONE)
        task.log("never")

    def prepare(_tasks: Tasks, faults: Faults) -> None:
        strike = Strike(reason="storage went away")
        faults.add("late", FaultRule(point=Point.TASK, strike=strike, method="qmstart", path="100"))

    assert run(work, prepare) == ("storage went away", ["TASK ERROR: storage went away"])


def test_a_defect_in_a_worker_still_ends_its_task() -> None:
    async def work(task: Task) -> None:
        raise ZeroDivisionError("oops")

    status, lines = run(work)
    assert status == "internal error of the lab: ZeroDivisionError: oops"
    assert lines[-1].startswith("TASK ERROR: ")


def test_a_step_that_fails_leaves_nothing_behind() -> None:
    async def work(task: Task) -> None:
        with task.step():
            tasks_store.put("guests", "100", {})
            raise PveError("no")

    async def main() -> None:
        tasks, _, _ = make(tasks_store)
        start(tasks, work)
        await tasks.settle()

    tasks_store = Store()
    asyncio.run(main())
    assert tasks_store.get("guests", "100") is None


def test_a_upid_says_what_it_names() -> None:
    async def main() -> str:
        tasks, _, _ = make()
        with tasks.store.transaction():
            upid = tasks.start("pve1", "qmcreate", "100", authid="bob@pve!ci", work=nothing)
        await tasks.settle()
        document = tasks.get(upid)
        assert document is not None
        assert (document["user"], document["tokenid"]) == ("bob@pve", "ci")
        return upid

    upid = asyncio.run(main())
    parsed = parse_upid(upid)
    assert parsed is not None
    assert (parsed.node, parsed.type, parsed.id, parsed.user) == ("pve1", "qmcreate", "100", "bob@pve!ci")
    assert str(parsed) == upid
    assert len(upid.split(":")) == 9


@pytest.mark.parametrize("text", ["UPID:pve1:download:file", "", "UPID:pve1:1:2:3:a:b:c:", "x" * 1000])
def test_what_is_no_upid_is_not_read_as_one(text: str) -> None:
    assert parse_upid(text) is None


def test_a_stopped_task_ends_as_interrupted() -> None:
    async def main() -> str:
        tasks, _, _ = make(clone=1000)

        async def work(task: Task) -> None:
            await task.spend(Work.CLONE)

        upid = start(tasks, work)
        await tasks.settle()
        assert tasks.is_running(upid)
        tasks.stop(upid)
        await tasks.wait(upid)
        document = tasks.get(upid)
        assert document is not None
        return str(document["status"])

    assert asyncio.run(main()) == "received interrupt"


async def test_a_task_takes_as_long_as_its_work() -> None:
    tasks, clock, _ = make(clone=30)

    async def work(task: Task) -> None:
        await task.spend(Work.CLONE)

    upid = start(tasks, work)
    await tasks.settle()
    clock.advance(29)
    await asyncio.sleep(0)
    assert tasks.is_running(upid)
    clock.advance(1)
    await tasks.wait(upid)
    document = tasks.get(upid)
    assert document is not None
    assert document["endtime"] - document["starttime"] >= 30


def test_a_task_that_ran_at_a_crash_is_lost_and_finished_ones_are_kept(tmp_path: Path) -> None:
    async def crash() -> tuple[str, str]:
        (tmp_path / "running").mkdir()
        store = Store(SqliteDisk(tmp_path / "running" / "lab.sqlite"))
        tasks, _, _ = make(store, clone=1000)

        async def slow(task: Task) -> None:
            await task.spend(Work.CLONE)

        finished, lost = start(tasks, nothing), start(tasks, slow)
        await tasks.settle()
        # The files as they are now are what a kill would leave; the end of this process does not reach them.
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
        await tasks.close()
        store.close()
        return finished, lost

    async def restart(finished: str, lost: str) -> None:
        tasks, _, _ = make(Store(SqliteDisk(tmp_path / "killed" / "lab.sqlite")))
        tasks.recover()
        found = {upid: tasks.get(upid) for upid in (finished, lost)}
        assert [document and document["status"] for document in found.values()] == ["OK", "unexpected status"]
        assert not tasks.is_running(lost)
        fresh = start(tasks, nothing)
        await tasks.settle()
        assert fresh not in (finished, lost)
        tasks.store.close()

    asyncio.run(restart(*asyncio.run(crash())))
