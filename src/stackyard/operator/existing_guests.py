"""Working on guests that are there already, without the engine: looking at them, and reaching into them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.operator.create import guests_of
from stackyard.operator.node_work import NodeWork, SubtreeError
from stackyard.operator.outcome import NodeStatus, Verb
from stackyard.path.manifests import resolve_manifest
from stackyard.path.port_probe import port_probes
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping
    from typing import Any

    from stackyard.operator.guest_actions import GuestActions
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.progress import Tracker
    from stackyard.sources.manifest.model import Node

__all__ = ["ExistingGuests", "Verification", "open_node_work"]


@contextlib.asynccontextmanager
async def open_node_work(
    manifest_run: ManifestRun,
    host: str,
    tracker: Tracker,
    *,
    guest_actions: Mapping[str, GuestActions],
    emit: events.Emit = events.ignore,
) -> AsyncIterator[NodeWork]:
    """Reach the guests of a host for the length of the block.

    Raises:
        StackyardError: The manifest does not fit on the host any more.
    """
    resolved = resolve_manifest(manifest_run.resolver, manifest_run.manifest, host)
    async with proxmox.Client(resolved.connection) as client, port_probes(resolved.jump) as probe_port:
        yield NodeWork(
            manifest_run=manifest_run,
            host=host,
            client=client,
            guests=guests_of(resolved.desired, manifest_run.roots_on(host)),
            guest_actions=guest_actions[host],
            tracker=tracker,
            probe_port=probe_port,
            emit=emit,
        )


@dataclass(slots=True)
class ExistingGuests:
    """Works on the guests of a run that are there.

    Attributes:
        manifest_run: What the run is about.
        tracker: Takes note of everything.
        guest_actions: Reach into the guests of each host.
        emit: Takes the events.
    """

    manifest_run: ManifestRun
    tracker: Tracker
    guest_actions: Mapping[str, GuestActions]
    emit: events.Emit = events.ignore

    def _reach(self, host: str) -> contextlib.AbstractAsyncContextManager[NodeWork]:
        return open_node_work(
            self.manifest_run, host, self.tracker, guest_actions=self.guest_actions, emit=self.emit
        )


class Verification(ExistingGuests):
    """Looks at every node that is there, at every depth."""

    async def run(self) -> bool:
        """Verify; return whether every node is what it should be. What is wrong is noted with each node.

        Raises:
            StackyardError: The manifest does not fit on a host any more.
        """
        with self.tracker.time_all("verify_nodes"):
            async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                for host in self.manifest_run.hosts:
                    work = await stack.enter_async_context(self._reach(host))
                    for node in self.manifest_run.roots_on(host):
                        if self.tracker[node.name].status is not NodeStatus.FAILED:
                            group.create_task(self._look(node, work))
        chosen = [node for node in self.tracker.nodes if node.name in self.manifest_run.chosen]
        return all(node.is_well for node in chosen)

    async def _look(self, node: Node, work: NodeWork) -> None:
        is_well = await self._noted(node.name, work.inspect(node))
        if is_well:
            self.tracker.change(node.name, status=NodeStatus.COMPLETED)
        inside = [one.name for one in self.manifest_run.inside(node.name)]
        if node.type is not NodeType.PVE or not inside:
            return
        if is_well:
            await self._note_children(node, inside, work)
        for name in inside:
            if not is_well and self.tracker[name].error is None:
                said = f"It could not be looked at: {node.name} is not as it should be."
                self.tracker.fail(name, said, cause=node.name)

    async def _noted(self, name: str, looking_at: Coroutine[Any, Any, None]) -> bool:
        try:
            await looking_at
        except StackyardError as err:
            self.tracker.fail(name, err.detail)
            return False
        return True

    async def _note_children(self, node: Node, inside: list[str], work: NodeWork) -> None:
        try:
            await work.delegate(Verb.VERIFY, node)
        except SubtreeError:
            return
        except StackyardError as err:
            for name in inside:
                if self.tracker[name].error is None:
                    self.tracker.fail(name, err.detail, cause=node.name)
