"""Running a scenario: phase by phase, within its time, with what must be cleaned up cleaned up."""

from __future__ import annotations

import asyncio
import datetime
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError, UnreachableError
from stackyard.scenario.failures import PhaseFailedError, ScenarioTimeoutError, UnknownPhaseError
from stackyard.scenario.outcome import PhaseOutcome, PhaseStatus, ScenarioOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.scenario.context import Context
    from stackyard.scenario.model import ActionResult, Phase, Scenario

__all__ = ["resolve_skipped", "run_scenario"]

# Between two attempts; a machine that cannot be reached may be on its way.
_BACKOFF = Backoff(0.5, 60.0)
# How long everything may take together that cleans up after a failure.
_CLEANING_S = 300.0


def resolve_skipped(scenario: Scenario, skipped: Iterable[str]) -> tuple[str, ...]:
    """Return the phases that are to be skipped; the verb of a phase is enough where it is the only one.

    Raises:
        UnknownPhaseError: The scenario has no such phase.
    """
    known = [phase.name for phase in scenario.phases]
    resolved = []
    for said in skipped:
        meant = [said] if said in known else [name for name in known if name.partition("_")[0] == said]
        if len(meant) != 1:
            raise UnknownPhaseError(
                f"`{scenario.name}` has no phase `{said}`; it has {', '.join(f'`{name}`' for name in known)}."
            )
        resolved += meant
    return tuple(resolved)


async def run_scenario(scenario: Scenario, context: Context) -> ScenarioOutcome:
    """Run a scenario to its end.

    A phase that fails is part of the outcome, not an error. What is cancelled is ended on the machine, too,
    and phases that clean up run all the same.
    """
    return await _ScenarioRun(scenario, context).go()


@dataclass(slots=True)
class _ScenarioRun:
    scenario: Scenario
    context: Context
    phases: list[PhaseOutcome] = field(default_factory=list)
    error: StackyardError | None = None

    async def go(self) -> ScenarioOutcome:
        """Run every phase that is to run."""
        began_s, started = time.monotonic(), datetime.datetime.now(datetime.UTC)
        timeout_s = self.context.options.timeout_s or self.scenario.timeout_s
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                for phase in self.scenario.phases:
                    await self._phase(phase)
        except TimeoutError:
            if not deadline.expired():
                raise
            what = self.phases[-1].name if self.phases else self.scenario.name
            self.error = ScenarioTimeoutError(
                f"`{self.scenario.name}` was not done after {timeout_s:g} s: it was stopped in `{what}`."
            )
            await self._clean()
        except asyncio.CancelledError:
            await self._clean()
            raise
        return ScenarioOutcome(
            scenario=self.scenario.name,
            machine=self.context.machine.shown,
            started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            took_s=time.monotonic() - began_s,
            phases=tuple(self.phases),
            context=dict(self.context.values),
            error=self.error,
        )

    async def _clean(self) -> None:
        """Run the phases that clean up and have not run."""
        done = {phase.name for phase in self.phases if phase.status is PhaseStatus.PASSED}
        left = [phase for phase in self.scenario.phases if phase.always and phase.name not in done]
        if not left:
            return
        self.context.warn("cleaning up")
        try:
            async with asyncio.timeout(_CLEANING_S):
                for phase in left:
                    await self._phase(phase)
        except TimeoutError:
            self.context.warn(f"the cleaning was not done after {_CLEANING_S:g} s")

    async def _phase(self, phase: Phase) -> None:
        name, context = phase.name, self.context
        if name in context.options.skip or (self.error is not None and not phase.always):
            why = "The user skips it." if name in context.options.skip else "An earlier phase failed."
            self._skip(phase, why)
            return
        context.phase = name
        began_s = time.monotonic()
        try:
            with events.step(context.emit, f"scenario {name}", phase.description):
                result = await _in_time(phase, context)
                context.values.update(result.context_updates)
                message = context.redactor(result.message)
                if not result.success and not result.continue_on_failure:
                    raise PhaseFailedError(message)
        except StackyardError as err:
            # The first failure is the one to tell of; what fails while cleaning up follows from it.
            self.error = self.error or err
            self._note(phase, PhaseStatus.FAILED, began_s, context.redactor(err.detail))
        except asyncio.CancelledError:
            self._note(phase, PhaseStatus.FAILED, began_s, "It was stopped.")
            raise
        else:
            status = PhaseStatus.PASSED if result.success else PhaseStatus.FAILED
            if message:
                context.log(message)
            self._note(phase, status, began_s, message)

    def _skip(self, phase: Phase, why: str) -> None:
        emit, step = self.context.emit, f"scenario {phase.name}"
        emit(events.StepStarted(step=step, title=phase.description))
        emit(events.StepFinished(step=step, outcome=events.Outcome.SKIPPED, detail=why, elapsed_s=0.0))
        self._note(phase, PhaseStatus.SKIPPED, time.monotonic(), why)

    def _note(self, phase: Phase, status: PhaseStatus, began_s: float, message: str) -> None:
        self.phases = [known for known in self.phases if known.name != phase.name]
        self.phases.append(
            PhaseOutcome(
                name=phase.name,
                description=phase.description,
                status=status,
                took_s=time.monotonic() - began_s,
                message=message,
            )
        )


async def _in_time(phase: Phase, context: Context) -> ActionResult:
    """Run an action, and stop it when the time that the user gives it is over."""
    limit_s = context.options.phase_timeouts_s.get(phase.name)
    deadline = asyncio.timeout(limit_s)
    try:
        async with deadline:
            return await _attempt(phase, context)
    except TimeoutError as err:
        if not deadline.expired():
            raise
        raise ScenarioTimeoutError(f"`{phase.name}` was not done after {limit_s:g} s.") from err


async def _attempt(phase: Phase, context: Context) -> ActionResult:
    """Run an action, again where the machine could not be reached: nothing else gets better by waiting."""
    for left, pause_s in zip(reversed(range(phase.attempts)), _BACKOFF, strict=False):
        try:
            return await phase.action.run(context)
        except UnreachableError as err:
            if not left:
                raise
            context.warn(f"{err.detail} Trying again in {pause_s:g} s.")
        await asyncio.sleep(pause_s)
    raise AssertionError("a phase has at least one attempt")
