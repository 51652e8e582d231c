"""One node of a host: from the moment that its guest is created until everything about it is done."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events
from stackyard.operator.outcome import NodeStatus, Verb
from stackyard.operator.progress import PhaseFailedError
from stackyard.operator.readiness import HaltedError
from stackyard.path.port_probe import PortProbe, probe_directly
from stackyard.path.verify import verify_guest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.proxmox import Client
    from stackyard.desired import Guest
    from stackyard.operator.guest_actions import GuestActions
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.outcome import NodeOutcome
    from stackyard.operator.progress import Tracker
    from stackyard.operator.readiness import Readiness
    from stackyard.operator.request import VerbRequest
    from stackyard.path.verify import GuestUp
    from stackyard.sources.manifest.model import Manifest, Node

__all__ = ["NodeWork", "StopSignal", "SubtreeError", "with_buffer"]

# How many guests are reached into at once by default; each is a connection.
_AT_ONCE = 64


class SubtreeError(PhaseFailedError):
    """What runs inside of a node is not as it should be; each node says for itself what is wrong.

    Args:
        detail: What is wrong with whom.
        first: The node that failed first.
    """

    code = "E-OPERATOR-SUBTREE"
    summary = "Nodes inside of a node failed"
    default_remedy = "Look at the nodes that are named, and run the command again."

    def __init__(self, detail: str, first: str) -> None:
        super().__init__(detail)
        self.first = first


@dataclass(slots=True)
class StopSignal:
    """Whether nothing new is to be begun, and because of whom."""

    cause: str | None = None

    def check(self) -> None:
        """Go no further once someone has failed.

        Raises:
            HaltedError: Someone has.
        """
        if self.cause is not None:
            raise HaltedError(self.cause)


@dataclass(kw_only=True)
class NodeWork:
    """Works on the nodes of one host.

    Attributes:
        manifest_run: What is done.
        host: Where.
        client: Speaks to the cluster.
        guests: The guests by the names of their nodes.
        guest_actions: Reaches into guests.
        tracker: Takes note of everything.
        halt: Whether to continue.
        ready: Says when a guest is created; it is there already when absent.
        probe_port: Tries ports of guests, from where they can be reached.
        emit: Takes the events.
    """

    manifest_run: ManifestRun
    host: str
    client: Client
    guests: Mapping[str, Guest]
    guest_actions: GuestActions
    tracker: Tracker
    halt: StopSignal = field(default_factory=StopSignal)
    ready: Readiness | None = None
    probe_port: PortProbe = probe_directly
    emit: events.Emit = events.ignore
    up: dict[str, GuestUp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.manifest_run.request.parallel or _AT_ONCE)

    async def create(self, node: Node) -> None:
        """Take a node from the engine's hands and finish it.

        Raises:
            StackyardError: Something about it failed.
        """
        name, guest = node.name, self.guests[node.name]
        if self.ready is not None:
            self.tracker.change(name, status=NodeStatus.CREATING, vm_id=guest.vm_id)
            with self.tracker.phase(name, "create_guest", f"Making {name}"):
                await self.ready.wait(name)
        self.tracker.change(name, status=NodeStatus.STARTED)
        if guest.started and not guest.is_template:
            async with self._places:
                await self._finish(node, guest)
        self.tracker.change(name, status=NodeStatus.COMPLETED, error=None, cause=None)

    async def _finish(self, node: Node, guest: Guest) -> None:
        self.halt.check()
        up = await self.reach(node)
        self.halt.check()
        self.tracker.add(node.name, *await self.guest_actions.configure(node, guest, up))
        self.tracker.change(node.name, status=NodeStatus.CONFIGURED)

    async def reach(self, node: Node) -> GuestUp:
        """Wait until a guest runs and reports its address.

        Raises:
            GuestDownError: It does not in its time.
            ProxmoxError: Proxmox does not answer.
        """
        name = node.name
        guest = self._patient(self.guests[name])
        with self.tracker.phase(name, "wait_address", f"Waiting for the address of {name}"):
            up = await verify_guest(self.client, guest, probe_port=self.probe_port, emit=self.emit)
        address = up.addresses[0] if up.addresses else None
        self.up[name] = up
        self.tracker.change(name, status=NodeStatus.REACHED, vm_id=up.vm_id, address=address)
        return up

    def _patient(self, guest: Guest) -> Guest:
        """Return a guest with the time that it is given to come up."""
        said = self.manifest_run.timeouts.said.get("wait_address")
        if said is None:
            return with_buffer(guest, self.manifest_run.manifest.settings.timeout_buffer)
        verify = guest.verify.model_copy(update={"timeout_s": said})
        return guest.model_copy(update={"verify": verify})

    async def inspect(self, node: Node) -> None:
        """Look whether a node is what it should be.

        Raises:
            StackyardError: It is not.
        """
        guest = self.guests[node.name]
        if not guest.started or guest.is_template:
            return
        async with self._places:
            up = await self.reach(node)
            self.tracker.add(node.name, *await self.guest_actions.inspect(node, guest, up))

    async def delegate(self, verb: Verb, node: Node, only: tuple[str, ...] = ()) -> None:
        """Let what runs inside of a node be done there, and take note of what became of it.

        Args:
            verb: What is done.
            node: The node.
            only: These nodes inside of it alone; all that are meant when empty.

        Raises:
            SubtreeError: Something inside of it failed.
        """
        self.halt.check()
        up = self.up.get(node.name) or await self.reach(node)
        inside = self.manifest_run.inside(node.name)
        subtree = self._within_depth().subtree(node.name)
        request = self._request(node, subtree, only)
        delegated = await self.guest_actions.delegate(
            verb, node, self.guests[node.name], up, subtree=subtree, request=request
        )
        self.tracker.add(node.name, *delegated.phases)
        # A host speaks for what runs inside of it: what it says of others, or of itself, does not count.
        names = {one.name for one in inside} | set(subtree.by_name)
        ended = [outcome for outcome in delegated.outcome.nodes if outcome.name in names]
        depth = self.manifest_run.manifest.depth(node.name) + 1
        for outcome in ended:
            if outcome.name in self.manifest_run.manifest.by_name:
                self.tracker.put(_rebase_outcome(outcome, self.tracker, depth))
        bad = [outcome for outcome in ended if outcome.error is not None or not _is_as_asked(verb, outcome)]
        silent = {one.name for one in inside} - {outcome.name for outcome in ended}
        if verb in (Verb.CREATE, Verb.VERIFY):
            bad += [self._silent(name) for name in sorted(silent)]
        if not bad and not delegated.outcome.success:
            raise SubtreeError(f"Inside of {node.name}: {delegated.outcome.error}", node.name)
        if bad:
            said = "; ".join(f"{one.name}: {one.error or one.status}" for one in bad)
            first = next((one.cause or one.name for one in bad), node.name)
            raise SubtreeError(f"Inside of {node.name}: {said}", first)

    def _within_depth(self) -> Manifest:
        depth = self.manifest_run.request.depth
        return self.manifest_run.manifest if depth is None else self.manifest_run.manifest.up_to(depth)

    def _silent(self, name: str) -> NodeOutcome:
        """Take note of a node of which the inner operator said nothing: that is no success."""
        self.tracker.fail(name, "The operator inside said nothing about it.")
        return self.tracker[name]

    def _request(self, node: Node, subtree: Manifest, only: tuple[str, ...]) -> VerbRequest:
        own = self.manifest_run.request
        inside = {one.name for one in subtree.nodes}
        targets = only or tuple(name for name in own.targets if name in inside)
        return dataclasses.replace(
            own,
            name=None,
            file=None,
            text=orjson.dumps(subtree.document()).decode(),
            host=node.name,
            site=None,
            depth=None,
            targets=targets,
            vm_ids={name: vm_id for name, vm_id in own.vm_ids.items() if name in inside},
            is_delegated=True,
        )


def _is_as_asked(verb: Verb, outcome: NodeOutcome) -> bool:
    """Return whether a node is what it was asked to be: one that is gone was not created."""
    return outcome.is_well and (verb is Verb.DESTROY or outcome.status is NodeStatus.COMPLETED)


def _rebase_outcome(outcome: NodeOutcome, tracker: Tracker, depth: int) -> NodeOutcome:
    known = tracker[outcome.name]
    return dataclasses.replace(
        outcome,
        depth=outcome.depth + depth,
        host=known.host,
        created=outcome.created or known.created,
    )


def with_buffer(guest: Guest, buffer_s: int) -> Guest:
    """Return a guest that is given some more time to come up."""
    verify = guest.verify.model_copy(update={"timeout_s": guest.verify.timeout_s + buffer_s})
    return guest.model_copy(update={"verify": verify})
