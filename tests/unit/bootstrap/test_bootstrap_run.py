"""Steps run along their dependencies: only what is missing is done, and what cannot be seen is waited for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.run import ColdBootError, PlannedStep, StepUnknownError, run_steps
from stackyard.bootstrap.step import Observation, Report, absent, present, unknown


@dataclass
class Recorded:
    """A step that records what is asked of it."""

    name: str
    log: list[str]
    seen: list[Observation] = field(default_factory=list)
    fails: bool = False

    async def look(self) -> Observation:
        self.log.append(f"look {self.name}")
        return self.seen.pop(0) if self.seen else absent(f"{self.name} is missing")

    async def do(self, report: Report) -> None:
        report(f"{self.name} to be made")
        self.log.append(f"do {self.name}")
        if self.fails:
            raise StackyardError(f"{self.name} cannot be made.")

    async def prove(self, report: Report) -> None:
        del report
        self.log.append(f"prove {self.name}")


def plan(step: Recorded, *after: str, patience_s: float = 5.0) -> PlannedStep:
    return PlannedStep(step=step, after=after, patience_s=patience_s)


async def test_what_is_there_is_left_alone_and_the_rest_is_done_and_proven() -> None:
    log: list[str] = []
    timeline = await run_steps([plan(Recorded("a", log, [present()])), plan(Recorded("b", log), "a")])
    assert log == ["look a", "look b", "do b", "prove b"]
    assert [(row.name, row.outcome) for row in timeline.rows] == [("a", "present"), ("b", "done")]
    assert timeline.has_changes


async def test_what_cannot_be_seen_is_looked_at_again_and_never_made() -> None:
    log: list[str] = []
    seen = [unknown("it is dark"), unknown("it is dark"), present()]
    timeline = await run_steps([plan(Recorded("a", log, seen))])
    assert log == ["look a"] * 3
    assert not timeline.has_changes
    always = [unknown("it is dark")] * 1000
    with pytest.raises(ColdBootError, match="it is dark") as failed:
        await run_steps([plan(Recorded("a", log, always), patience_s=0.2)])
    assert isinstance(failed.value.errors[0], StepUnknownError)
    assert "do a" not in log


async def test_a_step_that_fails_stops_only_those_that_depend_on_it() -> None:
    log: list[str] = []
    steps = [
        plan(Recorded("a", log, fails=True)),
        plan(Recorded("after a", log), "a"),
        plan(Recorded("b", log)),
    ]
    with pytest.raises(ColdBootError, match="a cannot be made") as failed:
        await run_steps(steps)
    rows = {row.name: (row.outcome, row.detail) for row in failed.value.timeline.rows}
    assert rows == {
        "a": ("failed", "a cannot be made."),
        "after a": ("skipped", "a"),
        "b": ("done", ""),
    }


async def test_the_steps_that_the_end_waited_for_are_critical() -> None:
    log: list[str] = []
    steps = [plan(Recorded("a", log)), plan(Recorded("b", log), "a"), plan(Recorded("c", log), "a", "b")]
    timeline = await run_steps(steps)
    assert {row.name for row in timeline.rows if row.is_critical} == {"a", "b", "c"}


async def test_many_steps_that_wait_do_not_keep_another_from_running() -> None:
    log: list[str] = []
    came = asyncio.Event()

    @dataclass
    class Waiting(Recorded):
        async def look(self) -> Observation:
            return present() if came.is_set() else unknown("the control plane to answer")

    @dataclass
    class Releasing(Recorded):
        async def do(self, report: Report) -> None:
            await super().do(report)
            came.set()

    workers = [plan(Waiting(f"worker {number}", log)) for number in range(100)]
    timeline = await run_steps([*workers, plan(Releasing("control plane", log))])
    assert {row.outcome for row in timeline.rows} == {"present", "done"}


async def test_a_failed_boot_has_the_code_and_the_remedy_of_each_step() -> None:
    class OddError(StackyardError):
        code = "E-ODD"
        summary = "It is odd"
        default_remedy = "Make it even."

    @dataclass
    class Odd(Recorded):
        async def do(self, report: Report) -> None:
            del report
            raise OddError(f"{self.name} is odd.")

    with pytest.raises(ColdBootError, match=r"a: a is odd\.") as failed:
        await run_steps([plan(Odd("a", [])), plan(Recorded("b", [], fails=True))])
    found = {one.detail: (one.kind.code, one.kind.remedy) for one in failed.value.diagnostics}
    assert found["a is odd."] == ("E-ODD", "Make it even.")
    assert set(found) == {"a is odd.", "b cannot be made."}


async def test_a_step_that_only_waited_has_changed_nothing() -> None:
    waited = PlannedStep(step=Recorded("a", []), is_change=False)
    timeline = await run_steps([waited])
    assert timeline.rows[0].outcome == "done"
    assert not timeline.has_changes
