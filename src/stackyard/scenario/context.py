"""What an action is given: the machine, what the user and the site say, and what earlier phases found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import InternalError
from stackyard.scenario.failures import CommandFailedError
from stackyard.scenario.machines import MachineCommand

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.redaction import Redactor
    from stackyard.scenario.machines import Machine
    from stackyard.scenario.options import ScenarioOptions
    from stackyard.sources.site.load import Site

__all__ = ["Context"]


@dataclass(slots=True, kw_only=True)
class Context:
    """One run of a scenario, as its actions see it.

    Attributes:
        machine: Where commands run.
        options: What the user says.
        site: The site, where the scenario needs one.
        name: What the site calls the machine, where that is known.
        values: What earlier phases, or an earlier run, found out; never a secret.
        emit: Takes events.
        phase: The phase that runs.
    """

    machine: Machine
    options: ScenarioOptions
    site: Site | None = None
    name: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    emit: events.Emit = events.ignore
    phase: str = "scenario"

    @property
    def root(self) -> Path:
        """The folder of the site."""
        return self.needed_site.root

    @property
    def needed_site(self) -> Site:
        """The site, which the scenario said that it needs."""
        if self.site is None:
            raise InternalError(f"The phase '{self.phase}' needs a site, and its scenario does not say so.")
        return self.site

    @property
    def redactor(self) -> Redactor:
        """Masks secrets in text."""
        return self.machine.redactor

    def hide(self, *secrets: str) -> None:
        """Mask these from now on, too."""
        self.machine.redactor = self.machine.redactor.with_secrets(secrets)

    async def sh(
        self,
        script: str,
        *,
        stdin: str = "",
        timeout_s: float = 60.0,
        as_root: bool = True,
        is_quiet: bool = False,
    ) -> str:
        """Run a command on the machine and return what it wrote; see `Machine.run`."""
        work = MachineCommand(
            script=script, stdin=stdin, timeout_s=timeout_s, as_root=as_root, is_quiet=is_quiet
        )
        self.log(f"$ {script.strip().splitlines()[0]}", level=events.LogLevel.DEBUG)
        return await self.machine.run(work, lambda line: self.log(line, level=events.LogLevel.DEBUG))

    async def succeeds(self, script: str, *, timeout_s: float = 60.0, as_root: bool = True) -> bool:
        """Return whether a command ends with status 0; one that never ends is an error."""
        try:
            await self.sh(script, timeout_s=timeout_s, as_root=as_root)
        except CommandFailedError as err:
            if err.status is None:
                raise
            return False
        return True

    def log(self, text: str, *, level: events.LogLevel = events.LogLevel.INFO) -> None:
        """Tell the user something, with secrets masked."""
        self.emit(events.LogLine(level=level, source=self.phase, text=self.redactor(text)))

    def warn(self, text: str) -> None:
        """Tell the user something that should not be overlooked."""
        self.log(text, level=events.LogLevel.WARNING)
