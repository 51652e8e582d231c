"""Taking away what a run has made, and nothing that was there before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.operator.existing_guests import looking
from stackyard.operator.outcome import NodeStatus, Phase, PhaseStatus, Verb
from stackyard.operator.remove import Removal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.operator.guest_actions import GuestActions
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.progress import Tracker
    from stackyard.operator.remove import Removed

__all__ = ["Rollback"]


class Rollback:
    """Removes the nodes that a run made, the failed ones too.

    Args:
        manifest_run: What the run did.
        tracker: Knows what it made.
        guest_actions: Reach into the guests of each host.
        emit: Takes the events.
    """

    def __init__(
        self,
        manifest_run: ManifestRun,
        tracker: Tracker,
        guest_actions: Mapping[str, GuestActions],
        emit: events.Emit = events.ignore,
    ) -> None:
        self._manifest_run = manifest_run
        self._tracker = tracker
        self._guest_actions = guest_actions
        self._emit = emit
        self.errors: list[StackyardError] = []
        self.orphans: list[str] = []

    async def run(self, phase: str) -> bool:
        """Remove; tell whether nothing of it is left.

        Args:
            phase: What this is called in the outcome.
        """
        try:
            with self._tracker.whole(phase):
                for host in self._manifest_run.hosts:
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
        """Remove what was made inside of nodes that stay."""
        for node in self._manifest_run.roots_on(host):
            if self._tracker[node.name].created:
                continue
            made = [
                one.name for one in self._manifest_run.inside(node.name) if self._tracker[one.name].created
            ]
            if not made:
                continue
            try:
                async with looking(
                    self._manifest_run,
                    host,
                    self._tracker,
                    guest_actions=self._guest_actions,
                    emit=self._emit,
                ) as work:
                    await work.delegate(Verb.DESTROY, node, tuple(made))
                for name in made:
                    self._tracker.change(name, created=False)
            except StackyardError as err:
                self.errors.append(err)

    async def _on(self, host: str) -> None:
        made = [node.name for node in self._manifest_run.roots_on(host) if self._tracker[node.name].created]
        if not made:
            return
        removal = Removal(
            resolver=self._manifest_run.resolver,
            settings=self._manifest_run.settings,
            manifest=self._manifest_run.manifest.name,
            host=host,
            emit=self._emit,
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
            known = self._tracker[name]
            self._tracker.change(name, phases=(*known.phases, phase))
            if name not in left:
                self._gone(name)
                for one in self._manifest_run.inside(name):
                    self._gone(one.name)

    def _gone(self, name: str) -> None:
        """Take note that a node is gone; one that failed stays known as failed."""
        is_bad = self._tracker[name].status in (NodeStatus.FAILED, NodeStatus.SKIPPED)
        status = self._tracker[name].status if is_bad else NodeStatus.DESTROYED
        self._tracker.change(name, status=status, created=False)
