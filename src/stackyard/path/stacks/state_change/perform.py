"""Doing an operation on a copy of a state, with the real engine."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.engine import statefile
from stackyard.path.stacks.backend import BackendKind
from stackyard.path.stacks.state_change.content import digest_of, read_plain
from stackyard.path.stacks.state_change.copied_state import open_copy
from stackyard.path.stacks.state_change.document import ID
from stackyard.path.stacks.state_change.operation import StateVerb
from stackyard.sources.store.sealed import open_sealed
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.path.stacks.run import StackRun
    from stackyard.path.stacks.state_change.copied_state import CopiedState
    from stackyard.path.stacks.state_change.operation import StateOperation

__all__ = ["NoSuchVersionError", "NothingChangesError", "perform_on_copy"]


class NothingChangesError(InvalidInputError):
    """An operation would leave the state as it is."""

    code = "E-STATE-CHANGE-NOTHING"
    summary = "The state would stay as it is"
    default_remedy = "`stackyard state show` lists what the state of a stack in the store holds."


class NoSuchVersionError(InvalidInputError):
    """There is no earlier version of the state by that name."""

    code = "E-STATE-CHANGE-VERSION"
    summary = "There is no such version of the state"
    default_remedy = (
        "In the store of stackyard, it is a number: `stackyard state list` shows the name of the state, "
        "`stackyard state versions NAME` its versions. With another backend, it is the ID of an applied "
        "change: `stackyard stack state list`."
    )


@contextlib.asynccontextmanager
async def perform_on_copy(
    run: StackRun, data: bytes | None, operation: StateOperation
) -> AsyncIterator[tuple[CopiedState, bytes]]:
    """Do an operation on a copy; give the copy, and the state as it would be.

    Args:
        run: The stack.
        data: Its state.
        operation: What to do.

    Raises:
        NothingChangesError: Nothing would be different.
        NoSuchVersionError: There is no version to go back to.
        TofuError: The engine refuses it: no such address, or one that is taken.
    """
    if data is None and operation.verb is not StateVerb.IMPORT:
        raise NothingChangesError(f"{run.resolved.target} has no state yet.")
    async with open_copy(run, data) as copy:
        with events.step(run.emit, f"state {operation.verb}", f"Trying {operation} on a copy of the state"):
            if operation.verb is StateVerb.ROLLBACK:
                copy.write(await asyncio.to_thread(_read_version, run, operation.words[0]))
            else:
                await _perform(copy, operation)
        result = copy.read()
        if digest_of(result) == digest_of(data):
            raise NothingChangesError(f"{operation} changes nothing in the state of {run.resolved.target}.")
        yield copy, result


async def _perform(copy: CopiedState, operation: StateOperation) -> None:
    workdir, words = copy.run.workdir, operation.words
    match operation.verb:
        case StateVerb.MOVE:
            await statefile.state_mv(workdir, *words, file=copy.path)
        case StateVerb.REMOVE:
            await statefile.state_rm(workdir, words, file=copy.path)
        case StateVerb.PROVIDER:
            await statefile.replace_provider(workdir, *words, file=copy.path)
        case StateVerb.IMPORT:
            if copy.run.served is not None:
                copy.run.served.begin()
            await statefile.import_resource(workdir, *words, file=copy.path)


def _read_version(run: StackRun, version: str) -> bytes:
    """Return an earlier version: of our store by its number, else by the change that kept it."""
    name = run.resolved.target.state_name
    if ID.fullmatch(version):
        stored = open_sealed(run.settings.store, run.states.objects).get(layout.kept_state(name, version))
        if stored is None:
            raise NoSuchVersionError(f"The change {version} kept no state of {run.resolved.target}.")
        return stored.data
    if run.resolved.backend.kind is not BackendKind.STORE or not version.isdecimal():
        raise NoSuchVersionError(
            f"`{version}` is no version of the state of {run.resolved.target} ({run.resolved.backend.label})."
        )
    data = run.states.versions.read(name, run.states.versions.get(name, int(version)))
    read_plain(data)
    return data
