"""Taking away what a run has made, and nothing that was there before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.operator.existing_guests import ExistingGuests
from stackyard.operator.outcome import NodeStatus, Phase, PhaseStatus, Verb
from stackyard.operator.remove import Removal

if TYPE_CHECKING:
    from collections.abc import Collection

    from stackyard.operator.remove import Removed

__all__ = ["Rollback"]


@dataclass(slots=True)
class Rollback(ExistingGuests):
    """Removes the nodes that a run made, the failed ones too.

    Attributes:
        errors: What went wrong.
        orphans: What is left of guests that are gone.
    """

    errors: list[StackyardError] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    async def run(self, phase: str) -> bool:
        """Remove; return whether nothing of it is left.

        Args:
            phase: What this is called in the outcome.
        """
        try:
            with self.tracker.time_all(phase):
                for host in self.manifest_run.hosts:
                    await self._inside(host)
                    await self._on(host)
                if self.errors:
                    raise self.errors[0]
        except StackyardError as err:
            if err not in self.errors:
                self.errors.append(err)
            return False
        return True

    async def _inside(self, host: str) -> None:
        """Remove what was created inside of nodes that stay."""
        for node in self.manifest_run.roots_on(host):
            if self.tracker[node.name].created:
                continue
            made = [one.name for one in self.manifest_run.inside(node.name) if self.tracker[one.name].created]
            if not made:
                continue
            try:
                async with self._reach(host) as work:
                    await work.delegate(Verb.DESTROY, node, tuple(made))
                for name in made:
                    self.tracker.change(name, created=False)
            except StackyardError as err:
                self.errors.append(err)

    async def _on(self, host: str) -> None:
        made = [node.name for node in self.manifest_run.roots_on(host) if self.tracker[node.name].created]
        if not made:
            return
        removal = Removal(
            resolver=self.manifest_run.resolver,
            settings=self.manifest_run.settings,
            manifest=self.manifest_run.manifest.name,
            host=host,
            emit=self.emit,
        )
        removed = await removal.only(frozenset(made))
        self.orphans += removed.orphans
        self.errors += removed.errors
        self._note(made, removed)

    def _note(self, made: Collection[str], removed: Removed) -> None:
        left = {name for name in made if name not in removed.names} if removed.errors else set[str]()
        said = removed.errors[0].detail if removed.errors else ""
        for name in made:
            status = PhaseStatus.FAILED if name in left else PhaseStatus.PASSED
            phase = Phase(name="destroy_guest", status=status, detail=said if name in left else "")
            known = self.tracker[name]
            self.tracker.change(name, phases=(*known.phases, phase))
            if name not in left:
                self._note_destroyed(name)
                for one in self.manifest_run.inside(name):
                    self._note_destroyed(one.name)

    def _note_destroyed(self, name: str) -> None:
        """Take note that a node is gone; one that failed stays known as failed."""
        is_bad = self.tracker[name].status in (NodeStatus.FAILED, NodeStatus.SKIPPED)
        status = self.tracker[name].status if is_bad else NodeStatus.DESTROYED
        self.tracker.change(name, status=status, created=False)
