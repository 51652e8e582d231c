"""What a scenario is made of: phases, and in each an action."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["Action", "ActionResult", "ActionTable", "LazyAction", "Phase", "RunLocation", "Scenario"]

# A run may take this many times as long as it is expected to before it is stopped, and at least this long.
_PATIENCE = 10
_LEAST_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What became of an action.

    Attributes:
        success: Whether what it is for is so now.
        message: What there is to say, in full sentences.
        duration_s: How long it took; the runner measures it.
        context_updates: What later phases, and the user, get to know.
        continue_on_failure: Whether the next phase continues although this one failed.
    """

    success: bool
    message: str = ""
    duration_s: float = 0.0
    context_updates: Mapping[str, Any] = field(default_factory=dict)
    continue_on_failure: bool = False


class Action(Protocol):
    """One piece of work.

    It may be cancelled at any point, and then leaves nothing running. One that is repeated finds what it has
    done before and does the rest.
    """

    async def run(self, context: Context) -> ActionResult:
        """Do it.

        Raises:
            StackyardError: It failed; the same as a result without success, with more to say.
        """
        ...


ActionTable = Mapping[str, Callable[[], Action]]


@dataclass(frozen=True, slots=True)
class LazyAction:
    """An action of a table that is imported when the action runs.

    Attributes:
        load_table: Imports the table.
        name: What it is called there.
    """

    load_table: Callable[[], ActionTable]
    name: str

    def load(self) -> Action:
        """Import it."""
        return self.load_table()[self.name]()

    async def run(self, context: Context) -> ActionResult:
        """Import it and do it."""
        return await self.load().run(context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A step of a scenario.

    Attributes:
        name: Called `verb_noun`.
        description: What it does, for the user.
        action: Does it.
        always: Whether it runs also when an earlier phase failed or the run is stopped: it cleans up.
        attempts: How often it is tried while the machine cannot be reached.
    """

    name: str
    description: str
    action: Action
    always: bool = False
    attempts: int = 1


class RunLocation(enum.StrEnum):
    """Where a scenario can run."""

    ANY = "this machine or another"
    REMOTE = "another machine"
    NODE = "a node of the site"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A named piece of work.

    Attributes:
        name: Called `noun-verb`.
        summary: What it does, for the user.
        expected_s: How long it usually takes.
        phases: Its steps, in order.
        place: Where it can run.
        needs_site: Whether it reads or writes the site.
        needs_root: Whether it changes the machine as root.
        takes_env: Whether it makes a guest, which may be that of an env.
        is_disruptive: Whether it changes the machine so much that someone at a terminal is asked first.
    """

    name: str
    summary: str
    expected_s: float
    phases: tuple[Phase, ...]
    place: RunLocation = RunLocation.ANY
    needs_site: bool = True
    needs_root: bool = True
    takes_env: bool = False
    is_disruptive: bool = False

    @property
    def timeout_s(self) -> float:
        """When a run is stopped, unless the user says otherwise."""
        return max(self.expected_s * _PATIENCE, _LEAST_S)

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "name": self.name,
            "description": self.summary,
            "expected_runtime_seconds": self.expected_s,
            "timeout_seconds": self.timeout_s,
            "place": self.place.value,
            "phases": [phase.name for phase in self.phases],
        }
