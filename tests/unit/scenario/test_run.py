"""A run of a scenario: its order, what is skipped, tried again, stopped and cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.ssh_hosts import ScriptedHost, scripted

from stackyard.base import events
from stackyard.base.redaction import Redactor
from stackyard.clients import ssh
from stackyard.scenario.context import Context
from stackyard.scenario.failures import UnknownPhaseError
from stackyard.scenario.machines import Local, Remote
from stackyard.scenario.model import ActionResult, Phase, Scenario
from stackyard.scenario.options import ScenarioOptions
from stackyard.scenario.outcome import ScenarioOutcome
from stackyard.scenario.run import resolve_skipped, run_scenario

Does = Callable[[Context], Awaitable[ActionResult]]


@dataclass(frozen=True)
class Do:
    """An action that is a function."""

    does: Does

    async def run(self, context: Context) -> ActionResult:
        return await self.does(context)


def result(**fields: Any) -> Do:
    async def does(context: Context) -> ActionResult:
        del context
        return ActionResult(**{"success": True, **fields})

    return Do(does)


def phase(name: str, action: Do, **fields: Any) -> Phase:
    return Phase(name=name, description=f"Do {name}", action=action, **fields)


@dataclass
class Rig:
    """A scenario with the phases that a test names, on this machine."""

    phases: tuple[Phase, ...]
    options: ScenarioOptions = field(default_factory=ScenarioOptions)
    values: dict[str, Any] = field(default_factory=dict)
    seen: list[events.Event] = field(default_factory=list)

    @property
    def scenario(self) -> Scenario:
        return Scenario(name="test-run", summary="A test.", expected_s=1.0, phases=self.phases)

    def context(self) -> Context:
        return Context(machine=Local(), options=self.options, values=self.values, emit=self.seen.append)

    def run(self) -> ScenarioOutcome:
        return asyncio.run(run_scenario(self.scenario, self.context()))


def statuses(outcome: ScenarioOutcome) -> dict[str, str]:
    return {one.name: one.status.value for one in outcome.phases}


def test_phases_run_in_order_and_each_sees_what_the_ones_before_found_out() -> None:
    async def second(context: Context) -> ActionResult:
        return ActionResult(success=True, context_updates={"sum": context.values["one"] + 1})

    rig = Rig(
        (phase("find_one", result(context_updates={"one": 1, "_own": 2})), phase("add_two", Do(second)))
    )
    outcome = rig.run()
    assert outcome.success
    assert statuses(outcome) == {"find_one": "passed", "add_two": "passed"}
    document = outcome.document(plain_error=True)
    assert document["context"] == {"one": 1, "sum": 2}
    assert set(document) >= {"scenario", "success", "duration_seconds", "phases", "context"}
    assert "error" not in document
    finished = [event for event in rig.seen if isinstance(event, events.StepFinished)]
    assert [(event.step, event.outcome) for event in finished] == [
        ("scenario find_one", events.Outcome.DONE),
        ("scenario add_two", events.Outcome.DONE),
    ]


def test_a_phase_that_fails_stops_the_run_but_not_what_cleans_up() -> None:
    outcome = Rig(
        (
            phase("start_server", result()),
            phase("make_vm", result(success=False, message="No room.")),
            phase("verify_vm", result()),
            phase("destroy_vm", result(), always=True),
        )
    ).run()
    assert statuses(outcome) == {
        "start_server": "passed",
        "make_vm": "failed",
        "verify_vm": "skipped",
        "destroy_vm": "passed",
    }
    assert outcome.document(plain_error=True)["error"] == "No room."
    assert outcome.document(plain_error=False)["error"]["code"] == "E-SCENARIO-PHASE"
    assert outcome.status == 1


def test_a_failure_that_may_be_gone_on_after_is_shown_and_gone_on_after() -> None:
    failed = result(success=False, message="Not pretty.", continue_on_failure=True)
    outcome = Rig((phase("look_around", failed), phase("go_on", result()))).run()
    assert statuses(outcome) == {"look_around": "failed", "go_on": "passed"}
    assert outcome.success


def test_phases_are_skipped_by_their_name_or_their_verb_and_unknown_ones_are_refused() -> None:
    scenario = Rig((phase("build_images", result()), phase("fetch_images", result()))).scenario
    assert resolve_skipped(scenario, ["build", "fetch_images"]) == ("build_images", "fetch_images")
    with pytest.raises(UnknownPhaseError, match="it has `build_images`, `fetch_images`"):
        resolve_skipped(scenario, ["images"])
    rig = Rig(scenario.phases, options=ScenarioOptions(skip=("build_images",)))
    assert statuses(rig.run()) == {"build_images": "skipped", "fetch_images": "passed"}


def test_a_machine_that_is_not_there_is_tried_again_and_nothing_else_is() -> None:
    tried: list[str] = []

    async def flaky(context: Context) -> ActionResult:
        del context
        tried.append("flaky")
        if len(tried) < 3:
            raise ssh.SshUnreachableError("Not yet.")
        return ActionResult(success=True)

    async def wrong(context: Context) -> ActionResult:
        del context
        tried.append("wrong")
        raise ssh.SshError("Never.")

    outcome = Rig((phase("reach_it", Do(flaky), attempts=3), phase("use_it", Do(wrong), attempts=3))).run()
    assert tried == ["flaky", "flaky", "flaky", "wrong"]
    assert statuses(outcome) == {"reach_it": "passed", "use_it": "failed"}
    tried.clear()
    outcome = Rig((phase("reach_it", Do(flaky), attempts=2),)).run()
    assert outcome.status == 69


@pytest.mark.parametrize(
    "limits",
    [ScenarioOptions(timeout_s=0.3), ScenarioOptions(phase_timeouts_s={"wait_long": 0.3})],
    ids=["run", "phase"],
)
def test_a_run_that_takes_too_long_is_stopped_in_the_middle_of_a_phase_and_cleaned_up(
    limits: ScenarioOptions,
) -> None:
    async def forever(context: Context) -> ActionResult:
        await context.sh("sleep 1000", timeout_s=2000, as_root=False)
        return ActionResult(success=True)

    cleaned: list[str] = []

    async def clean(context: Context) -> ActionResult:
        cleaned.append(context.phase)
        return ActionResult(success=True)

    rig = Rig(
        (phase("wait_long", Do(forever)), phase("clean_up", Do(clean), always=True)),
        options=limits,
    )
    outcome = rig.run()
    assert outcome.error is not None
    assert outcome.error.code == "E-SCENARIO-TIMEOUT"
    assert "wait_long" in outcome.error.detail
    assert statuses(outcome) == {"wait_long": "failed", "clean_up": "passed"}
    assert cleaned == ["clean_up"]


def test_a_run_that_is_cancelled_cleans_up_and_stays_cancelled() -> None:
    cleaned: list[str] = []

    async def go() -> None:
        waiting = asyncio.Event()

        async def forever(context: Context) -> ActionResult:
            del context
            waiting.set()
            await asyncio.Event().wait()
            return ActionResult(success=True)

        async def clean(context: Context) -> ActionResult:
            cleaned.append(context.phase)
            return ActionResult(success=True)

        rig = Rig((phase("wait_long", Do(forever)), phase("clean_up", Do(clean), always=True)))
        running = asyncio.create_task(run_scenario(rig.scenario, rig.context()))
        await waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(go())
    assert cleaned == ["clean_up"]


def test_a_run_that_is_cancelled_ends_what_runs_on_the_other_machine(tmp_path: Path) -> None:
    machine = ScriptedHost()
    machine.answer("apt-get", "hang")

    async def install(context: Context) -> ActionResult:
        await context.sh("apt-get install everything", timeout_s=1000)
        return ActionResult(success=True)

    async def go() -> None:
        async with scripted(machine, tmp_path) as host, asyncio.timeout(60):
            rig = Rig((phase("install_all", Do(install)),))
            context = Context(machine=Remote(host), options=ScenarioOptions())
            running = asyncio.create_task(run_scenario(rig.scenario, context))
            await machine.hung.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await machine.ended.wait()
            await context.machine.close()

    asyncio.run(go())
    assert machine.ended.is_set()


def test_a_command_that_fails_is_told_with_its_host_status_and_last_lines_and_no_secret(
    tmp_path: Path,
) -> None:
    machine = ScriptedHost()
    lines = "\n".join([*(f"line {number}" for number in range(100)), "E: hunter-2-secret is wrong"])
    machine.answer("apt-get", lambda ran: (100, lines))
    seen: list[events.Event] = []

    async def install(context: Context) -> ActionResult:
        await context.sh("apt-get install x")
        return ActionResult(success=True)

    async def go() -> ScenarioOutcome:
        async with scripted(machine, tmp_path) as host:
            remote = Remote(host, Redactor(["hunter-2-secret"]))
            context = Context(machine=remote, options=ScenarioOptions(), emit=seen.append)
            rig = Rig((phase("install_x", Do(install)),))
            try:
                return await run_scenario(rig.scenario, context)
            finally:
                await remote.close()

    outcome = asyncio.run(go())
    assert outcome.error is not None
    detail = outcome.error.detail
    assert detail.startswith("`apt-get install x` on root@127.0.0.1:")
    assert "ended with status 100" in detail
    assert "line 99" in detail
    assert "line 1\n" not in detail
    assert "********" in detail
    assert "hunter-2-secret" not in detail + repr(seen)


def test_the_time_that_a_scenario_has_comes_from_what_it_is_expected_to_take() -> None:
    quick, slow = (
        Scenario(name="x-y", summary="", expected_s=seconds, phases=()) for seconds in (5.0, 180.0)
    )
    assert quick.timeout_s == 300.0
    assert slow.timeout_s == 1800.0
