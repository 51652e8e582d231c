"""From the name of a scenario to what became of it: the machine, the site, the context file, the report."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard import events
from stackyard.operator.outcome import Phase, PhaseStatus
from stackyard.operator.reports import Report, write_report
from stackyard.scenario.catalogue import find_scenario
from stackyard.scenario.context import Context
from stackyard.scenario.context_file import read_context, write_context
from stackyard.scenario.places import find_machine
from stackyard.scenario.running import resolve_skipped, run_scenario
from stackyard.site.discovery import SiteNotFoundError, find_site
from stackyard.site.load import Site

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.scenario.model import Scenario
    from stackyard.scenario.options import Options
    from stackyard.scenario.outcome import ScenarioOutcome

__all__ = ["Launch", "prepare"]

_REPORTS = "reports"
_TOKENS = "`api_tokens`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A scenario that is ready to run.

    Attributes:
        scenario: Which one.
        context: What its actions are given.
        context_file: Where the context comes from and goes to.
        report_folder: Where reports go.
    """

    scenario: Scenario
    context: Context
    context_file: Path | None = None
    report_folder: Path | None = None

    async def run(self) -> ScenarioOutcome:
        """Run it to its end and write what is to be left; see `run_scenario`.

        Raises:
            FileError: The context or a report cannot be written.
        """
        try:
            outcome = await run_scenario(self.scenario, self.context)
        finally:
            # Also when it is stopped: the next run goes on from what was found out.
            if self.context_file is not None:
                write_context(self.context_file, self.context.values)
            await self.context.machine.close()
        if self.report_folder is None:
            return outcome
        written = write_report(_report(outcome), self.report_folder, redactor=self.context.redactor)
        return dataclasses.replace(outcome, reports=tuple(str(path) for path in written))


def prepare(
    name: str,
    options: Options,
    *,
    site: str | None = None,
    context_file: Path | None = None,
    report_folder: Path | None = None,
    emit: events.Emit = events.ignore,
) -> Launch:
    """Find everything that a scenario needs; nothing is connected to yet.

    Raises:
        StackyardError: There is no such scenario, phase, machine or site, or the context file is wrong.
    """
    scenario = find_scenario(name)
    skipped = resolve_skipped(scenario, options.skip)
    found_site = _site(scenario, site)
    machine = find_machine(scenario, options, found_site)
    context = Context(
        machine=machine.machine,
        options=dataclasses.replace(options, skip=skipped),
        site=found_site,
        name=machine.name,
        values={} if context_file is None else read_context(context_file),
        emit=emit,
    )
    if report_folder is None and found_site is not None:
        report_folder = found_site.root / _REPORTS
    return Launch(scenario=scenario, context=context, context_file=context_file, report_folder=report_folder)


def _site(scenario: Scenario, said: str | None) -> Site | None:
    """Return the site; one that is not needed is used where there is one."""
    if not scenario.needs_site and said is None:
        try:
            find_site()
        except SiteNotFoundError:
            return None
    site = Site.open(said)
    # A node whose token is missing is what `pve-setup` makes one for.
    if any(_TOKENS not in finding.detail for finding in site.found.errors):
        site.found.raise_errors(f"The site {site.root}")
    return site


def _report(outcome: ScenarioOutcome) -> Report:
    return Report(
        scenario=outcome.scenario,
        host=outcome.machine,
        success=outcome.success,
        started_at=outcome.started_at,
        duration_s=outcome.took_s,
        phases=tuple(
            Phase(
                name=phase.name,
                status=PhaseStatus(phase.status.value),
                took_s=phase.took_s,
                detail=phase.message,
            )
            for phase in outcome.phases
        ),
        error=None if outcome.error is None else outcome.error.detail,
    )
