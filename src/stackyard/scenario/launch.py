"""From the name of a scenario to what became of it: the machine, the site, the context file, the report."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.operator.outcome import Phase, PhaseStatus
from stackyard.operator.reports import Report, write_report
from stackyard.scenario.catalogue import find_scenario
from stackyard.scenario.context import Context
from stackyard.scenario.context_file import read_context, write_context
from stackyard.scenario.failures import RetiredError
from stackyard.scenario.find_machine import find_machine
from stackyard.scenario.retired import RETIRED_OPTIONS
from stackyard.scenario.run import resolve_skipped, run_scenario
from stackyard.sources.site.discovery import SiteNotFoundError, find_site
from stackyard.sources.site.load import Site
from stackyard.sources.site.scope import divide, files_of_host, report_unused

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.scenario.model import Scenario
    from stackyard.scenario.options import ScenarioOptions
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
            # Also when it is stopped: the next run continues from what was found out.
            if self.context_file is not None:
                write_context(self.context_file, self.context.values)
            await self.context.machine.close()
        if self.report_folder is None:
            return outcome
        written = write_report(_report(outcome), self.report_folder, redactor=self.context.redactor)
        return dataclasses.replace(outcome, reports=tuple(str(path) for path in written))


def prepare(
    name: str,
    options: ScenarioOptions,
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
    if options.env is not None and not scenario.takes_env:
        raise RetiredError(
            f"The option --env belongs to scenarios that were retired in v0.47, and `{name}` makes no guest.",
            remedy=f"Use: {RETIRED_OPTIONS['--env']}",
        )
    skipped = resolve_skipped(scenario, options.skip)
    limits = {resolve_skipped(scenario, [name])[0]: s for name, s in options.phase_timeouts_s.items()}
    found_site = _site(scenario, site, emit)
    machine = find_machine(scenario, options, found_site)
    if found_site is not None and machine.name is not None:
        _require_readable(found_site, machine.name)
    context = Context(
        machine=machine.machine,
        options=dataclasses.replace(options, skip=skipped, phase_timeouts_s=limits),
        site=found_site,
        name=machine.name,
        values={} if context_file is None else read_context(context_file),
        emit=emit,
    )
    if report_folder is None and found_site is not None:
        report_folder = found_site.root / _REPORTS
    return Launch(scenario=scenario, context=context, context_file=context_file, report_folder=report_folder)


def _site(scenario: Scenario, said: str | None, emit: events.Emit) -> Site | None:
    """Return the site; one that is not needed is used where there is one.

    What is wrong with single files is reported here, and refused by whatever uses them.
    """
    if not scenario.needs_site and said is None:
        try:
            find_site()
        except SiteNotFoundError:
            return None
    site = Site.open(said)
    everywhere, of_files = divide(site, ())
    everywhere.raise_errors(f"The site {site.root}")
    # A node whose token is missing is what `pve-setup` makes one for.
    report_unused([finding for finding in of_files.errors if _TOKENS not in finding.detail], emit)
    return site


def _require_readable(site: Site, host: str) -> None:
    """Refuse a machine whose file cannot be read, which is another than one that has no file yet."""
    if host in site.broken["nodes"] | site.broken["hosts"]:
        divide(site, files_of_host(site, host))[0].raise_errors(f"The host '{host}'")


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
