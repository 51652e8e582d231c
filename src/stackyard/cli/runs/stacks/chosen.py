"""The way from the options of a command to the run of one stack."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.cli.runs.plan_options import repeat_with_permits, settings_of
from stackyard.cli.unstored import warn_of_unstored_states
from stackyard.guard import GuardRefusedError
from stackyard.path.recording import RunSubject, recorded
from stackyard.path.stacks.arguments import read_arguments
from stackyard.path.stacks.checkout import read_checkout
from stackyard.path.stacks.dependencies import read_inputs
from stackyard.path.stacks.engines import Engines
from stackyard.path.stacks.inputs import NO_INPUTS
from stackyard.path.stacks.run import open_stack_run
from stackyard.path.stacks.source import StackSource, split_workspace
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.stacks.copies import CopyCheck
from stackyard.sources.stacks.kinds import KIND, is_code, is_values

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from stackyard.base.errors import StackyardError
    from stackyard.cli.session import Session
    from stackyard.path.recording import Recording
    from stackyard.path.settings import RunSettings
    from stackyard.path.stacks.checkout import Checkout
    from stackyard.path.stacks.files import StackFiles
    from stackyard.path.stacks.inputs import StackInputs
    from stackyard.path.stacks.run import StackRun
    from stackyard.path.stacks.source import CodeSource, ResolvedStack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["ChosenStack", "StackCommand"]


_NOT_PERMITTED = "Correct the code, its values or stack.yaml: no option permits all of this."
_NOT_PERMITTED_IN_INPUT = (
    "Correct the input, and run `stackyard cluster configure`: no option permits all of this."
)


class StackCommand:
    """A command on stacks: what all of its stacks share.

    Args:
        session: The command.
        values: Its options.
    """

    def __init__(self, session: Session, values: Mapping[str, Any]) -> None:
        self.session = session
        self.values = values
        self.source: CodeSource = _find_source(values.get("target"))
        self.store = self.source.store
        self.engines = Engines()
        self.arguments = read_arguments(values.get("engine_words", ()))
        self._checkout: Checkout | None = None
        self._copies: CopyCheck | None = None
        warn_of_unstored_states(self.store.base, session)
        self.isolation = self.source.check_isolation()
        for finding in self.isolation.found.warnings:
            session.emit_once(events.LogLine(level=events.LogLevel.WARNING, source=KIND, text=finding.detail))

    def settings(self) -> RunSettings:
        """Return how to run."""
        return settings_of(self.values, self.store)

    def warn_of_copies(self, resolved: ResolvedStack) -> None:
        """Say what a stack still has of the one that it was copied from."""
        if self.source.is_generated:
            return
        if self._copies is None or self._copies.repository is not resolved.repository:
            self._copies = CopyCheck(resolved.repository)
        for finding in self._copies.check(resolved.stack):
            text = f"{finding.detail} {finding.kind.remedy}"
            self.session.emit_once(events.LogLine(level=events.LogLevel.WARNING, source=KIND, text=text))

    async def checkout(self) -> Checkout:
        """Return the working tree, looked at once."""
        if self._checkout is None:
            repository = self.source.repository
            self._checkout = await read_checkout(repository.tree, repository.cache)
        return self._checkout

    async def checkout_for(self, repository: StackRepository, files: StackFiles) -> Checkout:
        """Return the working tree as it is for files that were read again, maybe long after it was looked at.

        Args:
            repository: All stacks, as they were read again.
            files: The files that count.
        """
        tree, before = repository.tree, self.source.repository.tree.index
        known = {} if tree.index is None else tree.index.files
        if tree.index is None or before is None or tree.index.written_ns != before.written_ns:
            return await read_checkout(tree, repository.cache)
        found = await self.checkout()
        for path in files.list():
            tracked, name = known.get(path), path.rpartition("/")[2]
            is_new = tracked is None and (is_code(name) or is_values(name)) and path not in found.changed
            if is_new or (tracked is not None and tree.number(path) != tracked.blob):
                return await read_checkout(tree, repository.cache)
        return found

    async def choose(self, named: str) -> ChosenStack:
        """Return a stack, as `NAME` or `NAME@WORKSPACE`.

        Raises:
            UsageError: There is none of that name.
            InvalidInputError: Something is wrong with its files, or its state is that of another one too.
        """
        from stackyard.cli.runs.stacks.removed import require_not_removed  # lazy: it needs this module

        name, workspace = split_workspace(named.rpartition(":")[2])
        if not self.source.is_generated:
            require_not_removed(self, named)
        return ChosenStack(self, await self.source.resolve(name, workspace, self.arguments))


def _find_source(target: str | None) -> CodeSource:
    if target is not None and target.startswith(f"{CLUSTER}:"):
        from stackyard.path.clusters.source import ClusterSource  # lazy: stacks need none of it

        return ClusterSource.find()
    return StackSource.find()


class ChosenStack:
    """A stack that a command works on.

    Args:
        command: The command.
        resolved: The stack.
        source: Where it comes from; all stacks of the command when absent.
    """

    def __init__(
        self, command: StackCommand, resolved: ResolvedStack, source: CodeSource | None = None
    ) -> None:
        self._command = command
        self._source = source or command.source
        self._recording: Recording | None = None
        self.resolved = resolved

    def note_failures(self, errors: Sequence[StackyardError]) -> None:
        """Record that the run that is open failed, if there are errors that it reports and does not raise."""
        if self._recording is not None:
            self._recording.note_failures(errors)

    def note(self, notes: Mapping[str, Any]) -> None:
        """Add what a verb reports to the record of the run that is open."""
        if self._recording is not None:
            self._recording.change(notes={**self._recording.run.notes, **notes})

    @contextlib.asynccontextmanager
    async def run(
        self, verb: str, *, is_locked: bool = False, is_recorded: bool = True
    ) -> AsyncIterator[StackRun]:
        """Put everything in place, and record the run; a refusal of the guard says how to repeat the command.

        Args:
            verb: What is done.
            is_locked: Whether the stack is locked for the length of the block.
            is_recorded: Whether the run gets a record of its own.

        Raises:
            InvalidInputError: The stack shares its state with another one.
        """
        command = self._command
        command.isolation.require(self.resolved.stack.name)
        command.warn_of_copies(self.resolved)
        async with contextlib.AsyncExitStack() as stack:
            emit = command.session.emit
            if is_recorded:
                self._recording = await stack.enter_async_context(recorded(await self._subject(verb), emit))
                emit = self._recording.emit
            try:
                # Under a lock, they are read when it is held.
                inputs = NO_INPUTS if is_locked else await self._read_inputs()
                run = await stack.enter_async_context(
                    open_stack_run(
                        self.resolved,
                        command.settings(),
                        engine=await command.engines.get(self.resolved.stack.settings.engine),
                        inputs=inputs,
                        emit=emit,
                        reread=self._reread if is_locked else None,
                    )
                )
                yield run
            except GuardRefusedError as err:
                can_be_permitted = all(one.permit is not None for one in err.findings)
                corrected = _NOT_PERMITTED_IN_INPUT if command.source.is_generated else _NOT_PERMITTED
                remedy = repeat_with_permits(err.permits) if can_be_permitted else corrected
                raise GuardRefusedError(err.detail, err.findings, remedy=remedy) from err

    async def _reread(self) -> tuple[ResolvedStack, StackInputs]:
        self.resolved = await self._source.reread(self.resolved)
        return self.resolved, await self._read_inputs()

    async def _read_inputs(self) -> StackInputs:
        source = StackSource(self.resolved.repository)
        return await read_inputs(source, self.resolved, self._command.settings(), self._command.engines)

    async def _subject(self, verb: str) -> RunSubject:
        target = self.resolved.target
        checkout = await self._command.checkout()
        words = " ".join(self.resolved.arguments.shown)
        return RunSubject(
            verb=verb,
            target=f"{target} -- {words}" if words else str(target),
            state=target.state_name,
            store=self._command.store,
            redactor=self.resolved.redactor,
            commit=f"{checkout.commit}-dirty" if checkout.changed else checkout.commit,
        )
