"""Destroying: all that a manifest has on its hosts, or some of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.operator.existing_guests import open_node_work
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Verb
from stackyard.operator.phase_limits import limit_phase
from stackyard.operator.remove import Removal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.operator.guest_actions import GuestActions
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.progress import Tracker
    from stackyard.operator.remove import Removed
    from stackyard.path.run import RunSettings
    from stackyard.sources.site import ConfigResolver

__all__ = ["Destruction"]


@dataclass(kw_only=True)
class Destruction:
    """Destroys a manifest.

    Attributes:
        resolver: The site.
        settings: How the engine is run.
        manifest: The manifest, by its name.
        hosts: Where it is.
        tracker: Takes note of everything.
        emit: Takes the events.
        errors: What failed and belongs to no node.
        orphans: Guests with its tag that are left and in no state.
        unlisted: Guests that were destroyed and are not in the manifest, only in its state.
    """

    resolver: ConfigResolver
    settings: RunSettings
    manifest: str
    hosts: tuple[str, ...]
    tracker: Tracker
    emit: events.Emit = events.ignore
    # How long the engine may take on each host.
    limit_s: float | None = None
    # The guests that the user agreed to destroy; all when absent.
    confirmed: frozenset[str] | None = None
    errors: list[StackyardError] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    async def all(self) -> bool:
        """Destroy everything; what is inside of a node goes with it. Return whether nothing is left.

        Raises:
            GuardRefusedError: A guest is protected.
            StackyardError: A host or state cannot be used.
        """
        with self.tracker.time_all("destroy_nodes"):
            left: set[str] = set()
            for host in self.hosts:
                async with limit_phase(self.limit_s, "destroy", host):
                    removed = await self._removal(host).all()
                self._take(removed)
                self._note_unlisted(host, removed)
                left |= self._list_remaining(host, removed)
            for node in self.tracker.nodes:
                if self._root(node.name) not in left:
                    self._note_destroyed(node.name)
        return not self.errors

    async def some(self, manifest_run: ManifestRun, guest_actions: Mapping[str, GuestActions]) -> bool:
        """Destroy the nodes of a manifest run, at any depth. Return whether all of them are gone.

        Raises:
            GuardRefusedError: A guest is protected, or others would have to go too.
            StackyardError: A host or state cannot be used.
        """
        with self.tracker.time_all("destroy_nodes"):
            for host in self.hosts:
                roots = {node.name for node in manifest_run.roots_on(host)}
                await self._inside(manifest_run, host, guest_actions)
                if not roots:
                    continue
                async with limit_phase(self.limit_s, "destroy", host):
                    removed = await self._removal(host).only(frozenset(roots))
                self._take(removed)
                for name in roots - self._list_remaining(host, removed):
                    self._note_destroyed(name)
                    for one in manifest_run.inside(name):
                        self._note_destroyed(one.name)
        return not self.errors

    async def _inside(
        self, manifest_run: ManifestRun, host: str, guest_actions: Mapping[str, GuestActions]
    ) -> None:
        """Destroy what is meant inside of nodes that stay."""
        manifest, meant = manifest_run.manifest, manifest_run.chosen
        roots = {manifest_run.root_of(name).name for name in meant} - meant
        for root in sorted(roots):
            node = manifest.by_name[root]
            if manifest_run.root_host(root) != host:
                continue
            names = tuple(name for name in sorted(meant) if manifest_run.root_of(name).name == root)
            whole = manifest_run.with_root(root)
            async with open_node_work(
                whole, host, self.tracker, guest_actions=guest_actions, emit=self.emit
            ) as work:
                try:
                    await work.delegate(Verb.DESTROY, node, names)
                except StackyardError as err:
                    self.errors.append(err)
                    continue
            for name in names:
                self._note_destroyed(name)

    def _removal(self, host: str) -> Removal:
        return Removal(
            resolver=self.resolver,
            settings=self.settings,
            manifest=self.manifest,
            host=host,
            emit=self.emit,
            confirmed=self.confirmed,
        )

    def _take(self, removed: Removed) -> None:
        self.errors += removed.errors
        self.orphans += [text for text in removed.orphans if text not in self.orphans]

    def _note_unlisted(self, host: str, removed: Removed) -> None:
        """Take note of guests that the state had and the manifest no longer has."""
        for name in sorted(removed.names):
            if name not in self.tracker:
                self.tracker.put(NodeOutcome(name=name, status=NodeStatus.DESTROYED, host=host))
                self.unlisted.append(name)

    def _list_remaining(self, host: str, removed: Removed) -> set[str]:
        """Return the nodes of a host that are still there: where nothing failed, none is."""
        if not removed.errors:
            return set()
        left = {
            node.name for node in self.tracker.nodes if node.host == host and node.name not in removed.names
        }
        for name in left:
            self.tracker.fail(name, removed.errors[0].detail)
        return left

    def _root(self, name: str) -> str:
        """Return the node of a host that a node is, or is inside of."""
        while self.tracker[name].depth > 0 and (outer := self.tracker[name].host) in self.tracker:
            name = outer
        return name

    def _note_destroyed(self, name: str) -> None:
        self.tracker.change(
            name, status=NodeStatus.DESTROYED, address=None, created=False, error=None, cause=None
        )
