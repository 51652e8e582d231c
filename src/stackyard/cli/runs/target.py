"""The way from the options of a command to the run of a target."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.cli.runs.plan_options import repeat_with_permits, settings_of
from stackyard.cli.unstored import warn_of_unstored_states
from stackyard.guard import GuardRefusedError
from stackyard.path.environment import EnvironmentSource
from stackyard.path.hypervisor import HypervisorSource, SharedSource
from stackyard.path.manifests import ManifestSource
from stackyard.path.recording import RunSubject, recorded
from stackyard.path.run import RunSettings, open_run
from stackyard.path.target import NeedsCleanWorktree, find_target
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from stackyard.base.errors import StackyardError
    from stackyard.cli.session import Session
    from stackyard.path.recording import Recording
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved, Source
    from stackyard.sources.store import ChosenStore
    from stackyard.state.targets import TargetRecord

__all__ = ["ChosenTarget"]

_DEPLOYMENT = "deployment"
# The error of a deployment object that is not there.
_MISSING = "E-DEPLOYMENT-MISSING"
# The kinds of targets that a site has.
_KINDS = ("env", "hypervisor", "manifest", "site")


def _sources(session: Session, values: Mapping[str, Any]) -> tuple[dict[str, Source], ChosenStore]:
    """Return the sources that a target may come from, and where what their runs leave is kept."""
    if values["target"].partition(":")[0] == _DEPLOYMENT:
        from stackyard.path.deployment import DeploymentSource  # lazy: its schema; other targets need none

        deployment = DeploymentSource.find(
            emit=session.emit, warn=session.emit_once, warn_last=session.emit_last
        )
        return {deployment.kind: deployment}, deployment.store
    environments = EnvironmentSource.find(values["site"], emit=session.emit)
    resolver = environments.resolver
    known = (environments, SharedSource(resolver), HypervisorSource(resolver), ManifestSource(resolver))
    return {source.kind: source for source in known}, environments.store


class ChosenTarget:
    """The target that a command line names.

    Args:
        session: The command.
        values: Its options.
        by_state: Whether the state is enough, so that a target whose input is gone can be named too.
    """

    def __init__(self, session: Session, values: Mapping[str, Any], *, by_state: bool = False) -> None:
        self._session = session
        self._values = values
        self._by_state = by_state
        self._recording: Recording | None = None
        self._source, self.store, self.resolved = self._read()
        warn_of_unstored_states(self.store.base, session)

    def _read(self) -> tuple[Source, ChosenStore, Resolved]:
        sources, store = _sources(self._session, self._values)
        named = self._values["target"]
        try:
            source, name = find_target(named, sources)
        except UsageError:
            bare = named.rpartition(":")[2]
            # A name that several sources have is a question, and not an input that is gone.
            is_gone = self._by_state and not any(bare in source.names() for source in sources.values())
            found = _find_applied_target(store, named, self._values["host"]) if is_gone else None
            if found is None:
                raise
            source = sources[found.kind]
            self._warn(
                found.kind,
                f"{found.target} is no longer in {found.source or 'its source'}; "
                f"the state {found.state} says what it has.",
            )
            return source, store, source.resolve_state(found.name, found.node)
        try:
            return source, store, source.resolve(name, self._values["host"])
        except InvalidInputError as err:
            # An object that is not there any more leaves a state, as a file does.
            is_held = self._by_state and err.code == _MISSING
            if not is_held or _find_applied_target(store, f"{source.kind}:{name}", None) is None:
                raise
            self._warn(source.kind, f"{err.detail} Its state says what it has.")
            return source, store, source.resolve_state(name, self._values["host"])

    def _warn(self, kind: str, text: str) -> None:
        self._session.emit(events.LogLine(level=events.LogLevel.WARNING, source=kind, text=text))

    def _read_again(self, recording: Recording) -> Resolved:
        """Return the target as the input says it now."""
        if not self._source.is_current():
            self._source, self.store, self.resolved = self._read()
            recording.mask_with(self.resolved.redactor)
        return self.resolved

    @property
    def kind(self) -> str:
        """The kind that the target was named by; that of the target itself may be a newer one."""
        return self._source.kind

    def settings(self) -> RunSettings:
        """Return how to run."""
        return settings_of(self._values, self.store)

    def note_failures(self, errors: Sequence[StackyardError]) -> None:
        """Record that the run that is open failed, if there are errors that it reports and does not raise."""
        if self._recording is not None:
            self._recording.note_failures(errors)

    def _subject(self, verb: str) -> RunSubject:
        source = Path(self.resolved.source)
        return RunSubject(
            verb=verb,
            target=str(self.resolved.target),
            state=self.resolved.target.state_name,
            store=self.store,
            redactor=self.resolved.redactor,
            source=source if source.is_dir() else None,
        )

    @contextlib.asynccontextmanager
    async def run(self, verb: str, *, may_be_empty: bool = False) -> AsyncIterator[Run]:
        """Put everything in place, and record the run; a refusal of the guard says how to repeat the command.

        Args:
            verb: What is done.
            may_be_empty: Whether an input without anything is meant.
        """
        if isinstance(self._source, NeedsCleanWorktree):
            await self._source.require_clean()
        try:
            async with (
                recorded(self._subject(verb), self._session.emit) as recording,
                open_run(
                    self.resolved,
                    self.settings(),
                    emit=recording.emit,
                    may_be_empty=may_be_empty,
                    reread=lambda: self._read_again(recording),
                ) as run,
            ):
                self._recording = recording
                yield run
        except GuardRefusedError as err:
            raise GuardRefusedError(
                err.detail, err.findings, remedy=repeat_with_permits(err.permits)
            ) from err


def _find_applied_target(store: ChosenStore, named: str, host: str | None) -> TargetRecord | None:
    """Return the target that was applied under a name, as the registry has it.

    Raises:
        UsageError: There are several.
    """
    from stackyard.path.registry import find_states  # lazy: only for a target whose input is gone

    kind, colon, name = named.rpartition(":")
    with contextlib.closing(store.read()) as objects:
        kinds = (kind,) if colon else _KINDS
        found = [one for one in find_states(StateService(objects), kinds) if one.name == name]
    found = [one for one in found if host in (None, one.node)]
    if len(found) > 1:
        nodes = ", ".join(sorted(one.node for one in found))
        raise UsageError(f"`{named}` was applied to several nodes: {nodes}. Name one with -H.")
    return found[0] if found else None
