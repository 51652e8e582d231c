"""The one way into the operator."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events
from stackyard.base.diagnostics import in_full
from stackyard.base.errors import BusyError, InvalidInputError, NotConfirmedError, StackyardError, UsageError
from stackyard.operator.approval import Approval
from stackyard.operator.create import Creation
from stackyard.operator.destroy import Destruction
from stackyard.operator.existing_guests import Verification
from stackyard.operator.manifest_run import ManifestRun, settings_for, timeouts_of
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, RunOutcome, Verb
from stackyard.operator.preflight import Purpose, preflight
from stackyard.operator.record_store import RecordStore
from stackyard.operator.rollback import Rollback
from stackyard.operator.run_recorder import RunRecorder, RunSubject, now, seed_outcome
from stackyard.path.manifests import KIND
from stackyard.path.recording import Recording, recorded
from stackyard.path.recording import RunSubject as RecordSubject
from stackyard.path.run import InputChangedError
from stackyard.path.target import Target
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site import ConfigResolver
from stackyard.state.run_records import Outcome as RecordedOutcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.operator.guest_actions import GuestActions, HandsFor
    from stackyard.operator.progress import Tracker
    from stackyard.operator.pve_nodes import InstallPve
    from stackyard.operator.record import RunRecord
    from stackyard.operator.request import VerbRequest
    from stackyard.sources.site.load import Site

    Prepare = Callable[[ManifestRun, events.Emit], "_ManifestVerb"]

__all__ = ["run_verb"]

# How often the input is read again because it was changed while a run waited for its lock.
_READS = 3


async def run_verb(
    verb: Verb,
    request: VerbRequest,
    emit: events.Emit = events.ignore,
    *,
    guest_actions_for: HandsFor | None = None,
    install_pve: InstallPve | None = None,
    approval: Approval | None = None,
) -> RunOutcome:
    """Do what is asked, to the end, and say what became of it.

    A node that fails is part of the outcome, not an error. Cancelling stops everything, what runs on inner
    hosts too, and leaves a record that says so.

    Args:
        verb: What to do.
        request: With what, and how.
        emit: Takes the events.
        guest_actions_for: Gives what reaches into the guests of a host; by SSH when absent.
        install_pve: Installs Proxmox VE on nodes of type `pve` whose image has none; without, they stay so.
        approval: What the user permits, and who is asked; only what the guard permits when absent.

    Raises:
        BusyError: Another run works on the same manifest and host.
        InvalidInputError: Something is wrong with the site, the manifest or the request.
        StackyardError: Nothing could be begun: the host does not answer, the preflight found something.
    """

    def prepare(manifest_run: ManifestRun, emit: events.Emit) -> _ManifestVerb:
        reach = guest_actions_for or _by_ssh(manifest_run, install_pve, emit)
        return _ManifestVerb(manifest_run, emit, reach, approval or Approval())

    for _ in range(_READS):
        with contextlib.suppress(InputChangedError):
            return await _run_verb(verb, request, emit, prepare)
    return await _run_verb(verb, request, emit, prepare)


async def _run_verb(verb: Verb, request: VerbRequest, emit: events.Emit, prepare: Prepare) -> RunOutcome:
    """Do what is asked with the input as it is now.

    Raises:
        InputChangedError: It was changed while the run waited for a lock; nothing was changed.
        StackyardError: As for `run_verb`.
    """
    resolver = ConfigResolver(request.site, emit=emit)
    try:
        manifest_run = ManifestRun.of(verb, request, resolver)
    except InvalidInputError:
        if verb is not Verb.DESTROY or request.name is None or request.targets:
            raise
        # What is there is in the state, whatever became of the file since.
        return await _destroy_by_name(request.name, request, resolver, emit)
    began_at, began_s = now(), time.monotonic()
    try:
        target = Target(kind=KIND, name=manifest_run.manifest.name, node=manifest_run.host)
        async with _recorded(
            verb, target, resolver.site, emit, is_delegated=request.is_delegated
        ) as recording:
            outcome = await prepare(manifest_run, recording.emit).run()
            recording.note(outcome)
    except (BusyError, InputChangedError, NotConfirmedError):
        raise
    except StackyardError as err:
        failed = RunOutcome(
            verb=verb,
            manifest=manifest_run.manifest.name,
            host=manifest_run.host,
            success=False,
            started_at=began_at,
            duration_s=time.monotonic() - began_s,
            error=f"{err.summary}: {in_full(err)}",
        )
        _write_reports(failed, request, resolver)
        raise
    return _write_reports(outcome, request, resolver)


class _VerbRecord:
    """The record of a verb; that of a delegated one is the outer operator's, who gets its events."""

    def __init__(self, emit: events.Emit, recording: Recording | None) -> None:
        self.emit = emit
        self._recording = recording

    def note(self, outcome: RunOutcome) -> None:
        """Put the outcome into the record."""
        if self._recording is not None:
            ended = RecordedOutcome.DONE if outcome.success else RecordedOutcome.FAILED
            error = None if outcome.success else {"detail": outcome.error or "A node failed."}
            notes = {"nodes": [node.as_json() for node in outcome.nodes]}
            self._recording.change(outcome=ended, error=error, notes=notes)


@contextlib.asynccontextmanager
async def _recorded(
    verb: Verb, target: Target, site: Site, emit: events.Emit, *, is_delegated: bool
) -> AsyncIterator[_VerbRecord]:
    if is_delegated:
        yield _VerbRecord(emit, None)
        return
    subject = RecordSubject(
        verb=verb.value,
        target=str(target),
        state=target.state_name,
        store=site.store,
        redactor=site.redactor(),
        source=site.root,
    )
    async with recorded(subject, emit) as recording:
        yield _VerbRecord(recording.emit, recording)


class _ManifestVerb:
    """One verb on one manifest that can be read."""

    def __init__(
        self,
        manifest_run: ManifestRun,
        emit: events.Emit,
        guest_actions_for: HandsFor,
        approval: Approval,
    ) -> None:
        self._manifest_run = manifest_run
        self._approval = approval
        self._emit = emit
        self._guest_actions_for = guest_actions_for
        self._guest_actions: dict[str, GuestActions] = {}
        self._orphans: list[str] = []
        self._unlisted: list[str] = []
        self._errors: list[StackyardError] = []

    async def run(self) -> RunOutcome:
        """Run it."""
        manifest_run = self._manifest_run
        verb = manifest_run.verb
        recorder = RunRecorder(
            RunSubject(
                verb=verb,
                manifest=manifest_run.manifest.name,
                host=manifest_run.host,
                books={host: manifest_run.open_record(host) for host in manifest_run.hosts},
                document=manifest_run.manifest.document(),
                vm_ids=manifest_run.request.vm_ids,
            ),
            self._emit,
        )
        async with recorder.hold_hosts(manifest_run.request.lock_wait_s) as has_waited:
            if has_waited and not manifest_run.resolver.site.is_current():
                raise InputChangedError("The site was changed while another run was waited for.")
            checked = await self._preflight()
            nodes = _nodes(manifest_run, recorder)
            async with recorder.record(nodes) as tracker, contextlib.AsyncExitStack() as stack:
                tracker.phases += checked
                for host in manifest_run.hosts:
                    self._guest_actions[host] = await stack.enter_async_context(self._guest_actions_for(host))
                success = await self._do(tracker)
            outcome = recorder.outcome(tracker, (*manifest_run.chosen, *self._unlisted), success=success)
        error = in_full(self._errors[0]) if self._errors else outcome.error
        return dataclasses.replace(
            outcome, error=None if success else error, orphans=tuple(dict.fromkeys(self._orphans))
        )

    async def _preflight(self) -> list[Phase]:
        """Look at the hosts first; a host that will not do is refused while nothing is touched."""
        manifest_run = self._manifest_run
        if manifest_run.request.skip_preflight or manifest_run.verb is Verb.VERIFY:
            return []
        purpose = Purpose.DESTROY if manifest_run.verb is Verb.DESTROY else Purpose.CREATE
        began_s = time.monotonic()
        for host in manifest_run.hosts:
            with events.step(self._emit, "preflight", f"Looking whether {host} will do"):
                await preflight(
                    manifest_run.resolver, manifest_run.manifest, host, purpose=purpose, emit=self._emit
                )
        return [Phase(name="check_hosts", took_s=time.monotonic() - began_s)]

    async def _do(self, tracker: Tracker) -> bool:
        match self._manifest_run.verb:
            case Verb.CREATE:
                return await self._create(tracker)
            case Verb.DESTROY:
                return await self._destroy(tracker)
            case Verb.VERIFY:
                return await Verification(self._manifest_run, tracker, self._guest_actions, self._emit).run()
            case Verb.TEST:
                return await self._test(tracker)

    async def _create(self, tracker: Tracker) -> bool:
        creation = Creation(
            manifest_run=self._manifest_run,
            tracker=tracker,
            guest_actions=self._guest_actions,
            emit=self._emit,
            approval=self._approval,
        )
        success = await creation.run()
        self._errors += creation.errors
        if not success and self._manifest_run.manifest.settings.on_error == "rollback":
            await self._undo(tracker, "rollback_nodes")
        if self._manifest_run.verb is Verb.CREATE:
            creation.note_unbegun()
        return success

    async def _test(self, tracker: Tracker) -> bool:
        settings = self._manifest_run.manifest.settings
        is_well = False
        try:
            is_well = await self._create(tracker)
            if is_well or settings.on_error == "continue":
                verification = Verification(self._manifest_run, tracker, self._guest_actions, self._emit)
                is_well = await verification.run() and is_well
        finally:
            is_cleaned = not (is_well or settings.cleanup_on_failure) or await self._undo(
                tracker, "destroy_nodes"
            )
        return is_well and is_cleaned

    async def _destroy(self, tracker: Tracker) -> bool:
        manifest_run = self._manifest_run
        destruction = Destruction(
            resolver=manifest_run.resolver,
            settings=manifest_run.settings,
            manifest=manifest_run.manifest.name,
            hosts=manifest_run.hosts,
            tracker=tracker,
            emit=self._emit,
            limit_s=manifest_run.timeouts.seconds("destroy"),
            confirmed=manifest_run.request.confirmed,
        )
        if manifest_run.request.targets:
            success = await destruction.some(manifest_run, self._guest_actions)
        else:
            success = await destruction.all()
        self._orphans += destruction.orphans
        self._unlisted += destruction.unlisted
        self._errors += destruction.errors
        return success

    async def _undo(self, tracker: Tracker, phase: str) -> bool:
        undoing = Rollback(self._manifest_run, tracker, self._guest_actions, self._emit)
        success = await undoing.run(phase)
        self._orphans += undoing.orphans
        self._errors += undoing.errors
        return success


async def _destroy_by_name(
    name: str, request: VerbRequest, resolver: ConfigResolver, emit: events.Emit
) -> RunOutcome:
    """Destroy a manifest that cannot be read any more: by its record, and by its state alone."""
    host = resolver.any_node(request.host)
    settings = settings_for(request, resolver, 0)
    book = RecordStore(settings.store, name, host)
    before = book.read()
    if before is not None and before.document is not None:
        text = orjson.dumps(before.document).decode()
        try:
            find_manifest(resolver.site, ManifestRequest(text=text))
        except InvalidInputError:
            pass
        else:
            again = dataclasses.replace(request, name=None, file=None, text=text)
            return await run_verb(Verb.DESTROY, again, emit)
    if before is None and not _has_state(resolver, name, host):
        raise UsageError(f"There is no manifest '{name}', and no run of that name on {host}.")
    target = Target(kind=KIND, name=name, node=host)
    async with _recorded(
        Verb.DESTROY, target, resolver.site, emit, is_delegated=request.is_delegated
    ) as recording:
        ended = await _destroy_all(book, before, request, resolver, recording.emit)
        recording.note(ended)
    return _write_reports(ended, request, resolver)


async def _destroy_all(
    book: RecordStore,
    before: RunRecord | None,
    request: VerbRequest,
    resolver: ConfigResolver,
    emit: events.Emit,
) -> RunOutcome:
    """Destroy what the state of a manifest on a host has."""
    name, host = book.manifest, book.host
    recorder = RunRecorder(RunSubject(verb=Verb.DESTROY, manifest=name, host=host, books={host: book}), emit)
    async with recorder.hold_hosts(request.lock_wait_s):
        async with recorder.record(() if before is None else before.nodes) as tracker:
            destruction = Destruction(
                resolver=resolver,
                settings=settings_for(request, resolver, 0),
                manifest=name,
                hosts=(host,),
                tracker=tracker,
                emit=emit,
                limit_s=timeouts_of(request, resolver).seconds("destroy"),
                confirmed=request.confirmed,
            )
            success = await destruction.all()
        outcome = recorder.outcome(tracker, [node.name for node in tracker.nodes], success=success)
    error = in_full(destruction.errors[0]) if destruction.errors else outcome.error
    return dataclasses.replace(outcome, error=error, orphans=tuple(destruction.orphans))


def _has_state(resolver: ConfigResolver, name: str, host: str) -> bool:
    from stackyard.state import StateService  # lazy: only for a manifest that is gone

    with contextlib.closing(resolver.site.store.read()) as objects:
        return Target(kind=KIND, name=name, node=host).state_name in StateService(objects).names()


def _write_reports(outcome: RunOutcome, request: VerbRequest, resolver: ConfigResolver) -> RunOutcome:
    """Write the reports of a run, unless an outer operator does."""
    if request.is_delegated:
        return outcome
    from stackyard.operator.reports import write_reports  # lazy: only at the end of a run

    folder = Path(request.report_dir) if request.report_dir else resolver.site.root / "reports"
    written = write_reports(outcome, folder, redactor=resolver.site.redactor())
    return dataclasses.replace(outcome, logs=(*outcome.logs, *map(str, written)))


def _nodes(manifest_run: ManifestRun, recorder: RunRecorder) -> list[NodeOutcome]:
    """Return every node of the hosts that are worked on, as it is at the begin."""
    manifest, found = manifest_run.manifest, []
    for node in manifest.nodes:
        root_host = manifest_run.root_host(node.name)
        if root_host not in manifest_run.hosts:
            continue
        known = recorder.get_previous(root_host, node.name)
        fresh = NodeOutcome(
            name=node.name,
            type=node.type.value,
            status=NodeStatus.PENDING,
            vm_id=node.entry.get("vmid"),
            host=manifest_run.host_of(node.name),
            depth=manifest.depth(node.name),
        )
        if node.name in manifest_run.chosen:
            found.append(seed_outcome(fresh, recorder.before.get(root_host), known, manifest_run.verb))
        else:
            found.append(known or fresh)
    return found


def _by_ssh(manifest_run: ManifestRun, install: InstallPve | None, emit: events.Emit) -> HandsFor:
    from stackyard.operator.guest_ssh import guest_actions_by_ssh  # lazy: SSH, only where a guest is reached

    return guest_actions_by_ssh(manifest_run, install, emit)
