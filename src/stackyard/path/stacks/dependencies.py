"""Reading the states of the stacks that another one takes outputs from."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.engine import tofu
from stackyard.path.stacks.backend import DEFAULT_WORKSPACE, BackendKind
from stackyard.path.stacks.inputs import NO_INPUTS, GivenState, StackInputs, collect_inputs
from stackyard.path.stacks.plan import state_version_of
from stackyard.path.stacks.run import open_stack_run
from stackyard.state import StateService
from stackyard.state.inside import EncryptedStateError, StateOutput, read_view

if TYPE_CHECKING:
    from stackyard.path.settings import RunSettings
    from stackyard.path.stacks.engines import Engines
    from stackyard.path.stacks.source import ResolvedStack, StackSource

__all__ = ["has_resources", "read_inputs", "read_stack_state"]


async def read_inputs(
    source: StackSource, resolved: ResolvedStack, settings: RunSettings, engines: Engines
) -> StackInputs:
    """Return what a stack takes from others, as their states have it now.

    A dependency is read in the same workspace, where it has a state there, else in the default one.

    Raises:
        InputsMissingError: Outputs are not there yet.
        StackyardError: A state cannot be read.
    """
    names = sorted({one.stack for one in resolved.stack.settings.after if one.outputs})
    if not names:
        return NO_INPUTS
    states = {}
    for name in names:
        data, found = None, await source.resolve(name)
        for workspace in dict.fromkeys((resolved.workspace, DEFAULT_WORKSPACE)):
            found = await source.resolve(name, workspace)
            data = await read_stack_state(found, settings, engines)
            if data is not None:
                break
        states[name] = await _read_given(found, data, settings, engines)
    return collect_inputs(resolved.stack, states, resolved.arguments.variables)


async def has_resources(resolved: ResolvedStack, settings: RunSettings, engines: Engines) -> bool:
    """Return whether the state of a stack holds anything; one that the engine encrypted counts as if.

    Raises:
        StackyardError: It cannot be read.
    """
    data = await read_stack_state(resolved, settings, engines)
    try:
        return data is not None and bool(read_view(data).instances)
    except EncryptedStateError:
        return True


async def _read_given(
    resolved: ResolvedStack, data: bytes | None, settings: RunSettings, engines: Engines
) -> GivenState:
    """Return what a state gives; the engine is asked where it encrypted it, because only it has the key."""
    try:
        return GivenState.read(data)
    except EncryptedStateError:
        engine = await engines.get(resolved.stack.settings.engine)
        async with open_stack_run(resolved, settings, engine=engine) as run:
            outputs = await tofu.output(run.workdir)
    return GivenState(
        version=state_version_of(data),
        outputs={
            name: StateOutput(name=name, value=one.value, is_sensitive=one.sensitive)
            for name, one in outputs.items()
        },
    )


async def read_stack_state(resolved: ResolvedStack, settings: RunSettings, engines: Engines) -> bytes | None:
    """Return the state of a stack as it is, without a lock; None where there is none yet.

    Raises:
        StackyardError: It cannot be read.
    """
    backend = resolved.backend
    if backend.kind is BackendKind.STORE:
        return await asyncio.to_thread(_read_store, resolved, settings)
    if backend.path is not None:
        return await asyncio.to_thread(backend.read_file)
    engine = await engines.get(resolved.stack.settings.engine)
    async with open_stack_run(resolved, settings, engine=engine) as run:
        return await run.read_state()


def _read_store(resolved: ResolvedStack, settings: RunSettings) -> bytes | None:
    with contextlib.closing(settings.store.read()) as objects:
        return resolved.backend.read_store(StateService(objects), resolved.target.state_name)
