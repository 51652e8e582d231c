"""Creating: one plan and one apply for each host, and each node on its own from there."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stackyard.base import events
from stackyard.base.dag import Graph
from stackyard.base.errors import StackyardError
from stackyard.base.schedule import Failed, Mode, NotStarted, Skipped, walk
from stackyard.guard import GuardRefusedError
from stackyard.operator.approval import Approval
from stackyard.operator.delegation.offer import forget_inner
from stackyard.operator.node_work import NodeWork, StopSignal, SubtreeError
from stackyard.operator.outcome import NodeStatus, Verb
from stackyard.operator.phase_limits import limit_phase
from stackyard.operator.readiness import HaltedError, Readiness
from stackyard.path.apply import apply_plan
from stackyard.path.manifests import resolve_manifest
from stackyard.path.plan import make_plan
from stackyard.path.run import open_run
from stackyard.render.references import address_of
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.schedule import Settled
    from stackyard.desired import Desired, Guest
    from stackyard.operator.guest_actions import GuestActions
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.progress import Tracker
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved
    from stackyard.sources.manifest.model import Node

__all__ = ["Creation", "guests_of"]


class Step(NamedTuple):
    """A node of a host, or what runs inside of it."""

    name: str
    is_inside: bool = False


@dataclass(kw_only=True)
class _Host:
    """A host whose plan is made and judged."""

    name: str
    run: Run
    made: Plan
    ready: Readiness
    work: NodeWork


@dataclass(kw_only=True)
class Creation:
    """Creates the nodes of a manifest run, and what belongs to them.

    Attributes:
        manifest_run: What is done.
        tracker: Takes note of everything.
        guest_actions: Reach into the guests of each host.
        emit: Takes the events.
        errors: What failed and belongs to no node.
        approval: What the user permits of the plans, and who is asked before they are applied.
    """

    manifest_run: ManifestRun
    tracker: Tracker
    guest_actions: Mapping[str, GuestActions]
    emit: events.Emit = events.ignore
    errors: list[StackyardError] = field(default_factory=list)
    approval: Approval = field(default_factory=Approval)
    halt: StopSignal = field(default_factory=StopSignal)
    _hosts: list[_Host] = field(default_factory=list, init=False)

    async def run(self) -> bool:
        """Create; return whether every node is as it should be. What failed is noted with each node.

        Raises:
            GuardRefusedError: A plan would destroy or stop something; nothing was changed.
            BusyError: Another run holds a state.
            StackyardError: A host cannot be planned for.
        """
        async with contextlib.AsyncExitStack() as stack:
            hosts = [await self._plan_host(stack, host) for host in self.manifest_run.hosts]
            for host in hosts:
                _require_permission(host)
            await self._confirm(hosts)
            for host in hosts:
                self._note_plan(host)
            self.tracker.flush()
            with self.tracker.time_all("create_nodes"):
                await self._walk({host.name: host for host in hosts})
        self._hosts = hosts
        chosen = [node for node in self.tracker.nodes if node.name in self.manifest_run.chosen]
        return not self.errors and all(node.status is NodeStatus.COMPLETED for node in chosen)

    async def _confirm(self, hosts: Iterable[_Host]) -> None:
        if self.approval.confirm is not None:
            for host in hosts:
                if not host.made.is_nothing:
                    await self.approval.confirm(host.run, host.made)

    async def _plan_host(self, stack: contextlib.AsyncExitStack, host: str) -> _Host:
        manifest_run = self.manifest_run
        with self.tracker.time_all("plan_guests"):
            resolved = resolve_manifest(manifest_run.resolver, manifest_run.manifest, host)
            roots = manifest_run.roots_on(host)
            wanted = guests_of(resolved.desired, roots).values()
            targets = () if manifest_run.is_whole(host) else tuple(map(address_of, wanted))

            plan_request = dataclasses.replace(self.approval.plan_request, targets=targets)

            def reread() -> Resolved:
                manifest_run.require_current()
                return resolved

            opening = open_run(resolved, manifest_run.settings, emit=self.emit, reread=reread)
            run = await stack.enter_async_context(opening)
            made = await stack.enter_async_context(make_plan(run, plan_request))
            guests = guests_of(made.desired, roots)
        ready = Readiness(guests, made.changes)
        work = NodeWork(
            manifest_run=manifest_run,
            host=host,
            client=run.client,
            guests=guests,
            guest_actions=self.guest_actions[host],
            tracker=self.tracker,
            halt=self.halt,
            ready=ready,
            probe_port=run.probe_port,
            emit=self.emit,
        )
        return _Host(name=host, run=run, made=made, ready=ready, work=work)

    def _note_plan(self, host: _Host) -> None:
        """Take note of what this run makes first: anyone who finds it incomplete knows whose it was."""
        for name in host.work.guests:
            is_new = name in host.ready.to_create or self.tracker[name].created
            self.tracker.change(name, created=is_new)
        hosts = [name for name in host.ready.to_create if self._is_inner_host(name)]
        if hosts:
            # What runs on an earlier host of the same name left is about guests that went with it.
            store = self.manifest_run.settings.store
            forget_inner(store, self.manifest_run.manifest.name, host.name, hosts)

    def _is_inner_host(self, name: str) -> bool:
        return self.manifest_run.manifest.by_name[name].type is NodeType.PVE

    def note_unbegun(self) -> None:
        """Take note of what was to be made and never was; until then, what was made for it counts as made."""
        for host in self._hosts:
            for name in host.ready.to_create - host.ready.begun:
                self.tracker.change(name, created=False)

    def _note_apply_event(self, host: _Host, event: events.ResourceApplied) -> None:
        """Note what the engine does with a guest, in any order."""
        name = host.ready.note_event(event)
        if name is not None and self.tracker[name].status is NodeStatus.PENDING:
            self.tracker.change(name, status=NodeStatus.CREATING, vm_id=host.work.guests[name].vm_id)
        if name in host.ready.done and self.tracker[name].status is NodeStatus.CREATING:
            self.tracker.change(name, status=NodeStatus.STARTED)

    def _note_created(self, host: _Host) -> None:
        """Take note of guests that are there although their nodes were passed over.

        The engine makes the guests of a host at once, also those of nodes whose turn never came. How far it
        got with each is known only when it has ended.
        """
        for name in host.work.guests:
            node = self.tracker[name]
            if node.status in (NodeStatus.CREATING, NodeStatus.STARTED) and node.cause is None:
                continue
            if node.status not in (NodeStatus.CREATING, NodeStatus.STARTED, NodeStatus.SKIPPED):
                continue
            because = f": {node.cause} failed first." if node.cause else "."
            if name in host.ready.done:
                said, status = "Its guest was created, and not configured", NodeStatus.STARTED
            elif name in host.ready.begun:
                said, status = "The engine was stopped while it created its guest", NodeStatus.CREATING
            elif name not in host.ready.to_create:
                said, status = "Its guest was there before, and was not looked at", NodeStatus.STARTED
            else:
                continue
            vm_id = host.work.guests[name].vm_id or node.vm_id
            self.tracker.change(name, status=status, error=f"{said}{because}", vm_id=vm_id)

    async def _walk(self, hosts: Mapping[str, _Host]) -> None:
        applies = {host.name: asyncio.create_task(self._apply(host)) for host in hosts.values()}

        async def work(step: Step) -> None:
            host = hosts[self.manifest_run.root_host(step.name)]
            node = self.manifest_run.manifest.by_name[step.name]
            await (host.work.delegate(Verb.CREATE, node) if step.is_inside else host.work.create(node))

        def settle(step: Step, end: Settled[Step, None]) -> None:
            self._note_end(step, end)
            if isinstance(end, Failed) and self._halts and self.halt.cause is not None:
                for task in applies.values():
                    task.cancel()

        graph = _steps(self.manifest_run)
        mode = Mode.STOP if self._halts else Mode.CONTINUE
        try:
            await walk(graph, work, parallel=max(len(graph), 1), mode=mode, on_settled=settle)
            await asyncio.gather(*applies.values())
        finally:
            for task in applies.values():
                task.cancel()
            # The engine stores its state before it ends, however it is stopped.
            await asyncio.gather(*applies.values(), return_exceptions=True)
            for host in hosts.values():
                self._note_created(host)

    @property
    def _halts(self) -> bool:
        return self.manifest_run.manifest.settings.on_error != "continue"

    async def _apply(self, host: _Host) -> None:
        """Let the engine do its part; whoever waits for a guest that does not come gets the error."""
        if host.made.is_nothing:
            return
        try:
            saw = functools.partial(self._note_apply_event, host)
            async with limit_phase(self.manifest_run.timeouts.seconds("provision"), "provision", host.name):
                await apply_plan(host.run, host.made, is_verified=False, on_resource=saw)
        except asyncio.CancelledError:
            if self.halt.cause is None:
                raise
            host.ready.end(HaltedError(self.halt.cause))
        except StackyardError as err:
            if not host.ready.end(err):
                # Every guest is there: it is something beside them that failed.
                self.errors.append(err)

    def _note_end(self, step: Step, end: Settled[Step, None]) -> None:
        names = [one.name for one in self.manifest_run.inside(step.name)] if step.is_inside else [step.name]
        match end:
            case Failed(error=HaltedError(cause=failed) as error):
                for name in names:
                    self.tracker.skip(name, error.detail, cause=failed)
            case Failed(error=error):
                first = error.first if isinstance(error, SubtreeError) else step.name
                self.halt.cause = self.halt.cause or (first if self._halts else None)
                self._note_failure(step, names, error)
            case Skipped(because=because) | NotStarted(because=because):
                cause = self._first_of(because)
                said = f"It was not begun: {cause} failed first." if cause else "It was not begun."
                for name in names:
                    self.tracker.skip(name, said, cause=cause)
            case _:
                pass

    def _first_of(self, because: tuple[Step, ...]) -> str | None:
        """Return the node that failed first of those that are in the way."""
        return (self.halt.cause or because[0].name) if because else None

    def _note_failure(self, step: Step, names: Iterable[str], error: Exception) -> None:
        said = error.detail if isinstance(error, StackyardError) else f"{type(error).__name__}: {error}"
        if not step.is_inside:
            self.tracker.fail(step.name, said)
            return
        for name in names:
            # What the inner operator said of each stays; who was not heard of failed with the way there.
            if self.tracker[name].error is None and not self.tracker[name].is_well:
                self.tracker.fail(name, said, cause=step.name)


def _require_permission(host: _Host) -> None:
    """Refuse a plan that the guard refuses, with the command that permits it.

    Raises:
        GuardRefusedError: With every reason.
    """
    target = host.run.resolved.target
    try:
        host.made.verdict.raise_refusal(f"{target} on {host.name}")
    except GuardRefusedError as err:
        said = " ".join(str(permit) for permit in err.permits)
        command = f"stackyard apply {target} -H {host.name} {said}"
        remedy = f"Correct the manifest; or, where every one of these is meant: {command}" if said else None
        raise GuardRefusedError(err.detail, err.findings, remedy=remedy) from err


def guests_of(desired: Desired, nodes: Iterable[Node]) -> dict[str, Guest]:
    """Return the guests of nodes, by the names of the nodes."""
    by_key = {guest.key: guest for guest in desired.guests}
    return {node.name: by_key[str(node.entry.get("key") or node.name)] for node in nodes}


def _steps(manifest_run: ManifestRun) -> Graph[Step]:
    """Return what is done in which order: a node after those that it depends on, then what is inside."""
    roots = [node for node in manifest_run.manifest.roots if node.name in manifest_run.chosen]
    edges = [
        (Step(node.name), Step(needed))
        for node in roots
        for needed in node.depends_on
        if needed in manifest_run.chosen
    ]
    inner = [
        Step(node.name, is_inside=True)
        for node in roots
        if node.type is NodeType.PVE and manifest_run.inside(node.name)
    ]
    edges += [(step, Step(step.name)) for step in inner]
    return Graph.build([*(Step(node.name) for node in roots), *inner], edges)
