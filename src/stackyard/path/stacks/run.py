"""Everything that the engine needs to work on one stack, in place for the length of a block."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard import provider
from stackyard.base import events
from stackyard.engine.alone import work_alone
from stackyard.engine.workdir import Limits, Workdir
from stackyard.path.planfile import encryption, plan_keys
from stackyard.path.run_state import hold_lock, recover_state
from stackyard.path.settings import ProviderChoice
from stackyard.path.stacks.backend import DEFAULT_WORKSPACE, BackendKind
from stackyard.path.stacks.initialise import initialise
from stackyard.path.stacks.input_addresses import InputAddresses
from stackyard.path.stacks.inputs import NO_INPUTS
from stackyard.path.workspace import Workspace
from stackyard.sources.store.keys import site_keys
from stackyard.state import StateService, layout
from stackyard.state.embedded import serve_embedded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from stackyard.clients.objects import Objects
    from stackyard.engine.failures import Finding
    from stackyard.engine.plan_place import PlanPlace
    from stackyard.engine.version import Engine
    from stackyard.path.planfile import PlanKey
    from stackyard.path.settings import RunSettings
    from stackyard.path.stacks.inputs import StackInputs
    from stackyard.path.stacks.source import ResolvedStack
    from stackyard.state.embedded import Embedded
    from stackyard.state.run_lock import RunLock

__all__ = ["StackRun", "open_stack_run"]

_PROXMOX = "bpg/proxmox"


@dataclass(frozen=True, slots=True)
class StackRun:
    """A stack that the engine can work on.

    Attributes:
        resolved: The stack.
        settings: How to run.
        workdir: Where the engine works, and its surroundings.
        keys: The keys of saved plans; the first is the one of this run.
        served: The built-in provider, where the stack uses it.
        states: The states of our store.
        lock: Our lock on the stack, where the run changes something.
        inputs: What other stacks gave.
        emit: Takes the events.
    """

    resolved: ResolvedStack
    settings: RunSettings
    workdir: Workdir
    keys: tuple[PlanKey, ...]
    served: provider.RunningProvider | None
    states: StateService
    lock: RunLock | None
    inputs: StackInputs = NO_INPUTS
    emit: events.Emit = field(default=events.ignore)

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self.workdir.engine

    @property
    def key(self) -> PlanKey:
        """The key that plans of this run are encrypted with."""
        return self.keys[0]

    def with_key(self, key: PlanKey) -> StackRun:
        """Return the same run with a key that a saved plan was encrypted with, as after a rotation."""
        if key == self.key:
            return self
        redactor = self.workdir.redactor.with_secrets([key.secret.hex()])
        return replace(
            self,
            keys=(key, *(one for one in self.keys if one != key)),
            workdir=replace(self.workdir, redactor=redactor),
        )

    def with_plan(self, place: PlanPlace, *, is_encrypted: bool) -> Workdir:
        """Return where the engine works on one plan.

        Args:
            place: Where the plan is.
            is_encrypted: Whether the engine encrypts it with our key, unless the user has keys of its own.
        """
        environment = dict(self.workdir.environment)
        if is_encrypted and "TF_ENCRYPTION" not in environment:
            environment |= encryption(self.engine, self.key)
        descriptors = (*self.workdir.descriptors, *place.descriptors)
        return replace(self.workdir, environment=environment, descriptors=descriptors)

    async def read_state(self) -> bytes | None:
        """Return the state as the engine wrote it; None where there is none yet."""
        target = self.resolved.target
        return await self.resolved.backend.read(self.states, target.state_name, self.workdir)


@contextlib.asynccontextmanager
async def open_stack_run(
    resolved: ResolvedStack,
    settings: RunSettings,
    *,
    engine: Engine,
    inputs: StackInputs = NO_INPUTS,
    emit: events.Emit = events.ignore,
    reread: Callable[[], Awaitable[tuple[ResolvedStack, StackInputs]]] | None = None,
) -> AsyncIterator[StackRun]:
    """Put everything in place.

    Args:
        resolved: The stack.
        settings: How to run.
        engine: The engine.
        inputs: What other stacks gave.
        emit: Takes the events.
        reread: For a run that changes something. The stack is locked in our store for the length of the
            block, and this returns it as its files are then, with what other stacks give it then: what was
            written while another run was waited for counts. A plan needs no lock of ours: the engine locks
            the state while it reads it.

    Raises:
        StateLockedError: Another run holds the stack for longer than we wait.
        StackyardError: The engine, the store or the backend cannot be used.
    """
    with contextlib.closing(settings.store.open()) as objects:
        states, name = StateService(objects), resolved.target.state_name
        keys = plan_keys((await asyncio.to_thread(site_keys, settings.store, objects)).ring)
        async with contextlib.AsyncExitStack() as stack:
            backend = lock = None
            if reread is not None or resolved.backend.kind is BackendKind.STORE:
                backend = await stack.enter_async_context(serve_embedded(states, prefix=name, emit=emit))
            if reread is not None and backend is not None:
                lock = await stack.enter_async_context(hold_lock(backend, name, settings))
                resolved, inputs = await reread()
            settings = _with_own_provider(settings, resolved)
            served = await stack.enter_async_context(_provider(resolved, settings, objects))
            plain = _workdir(resolved, settings, engine, keys[0], inputs)
            workdir = _with_backend(plain, resolved, backend, served)
            if reread is not None:
                workdir = await stack.enter_async_context(work_alone(workdir, workdir.data_folder, emit))
            await initialise(resolved, workdir, settings, emit)
            if lock is not None:
                await recover_state(workdir, name, emit)
            yield StackRun(resolved, settings, workdir, keys, served, states, lock, inputs, emit)


def _with_own_provider(settings: RunSettings, resolved: ResolvedStack) -> RunSettings:
    """Return how to run a stack that names its provider, where the user names none."""
    own = resolved.stack.settings.provider
    if settings.is_provider_given or own is None:
        return settings
    return replace(settings, provider=ProviderChoice(own))


def _workdir(
    resolved: ResolvedStack, settings: RunSettings, engine: Engine, key: PlanKey, inputs: StackInputs
) -> Workdir:
    environment = dict(resolved.environment)
    if resolved.workspace != DEFAULT_WORKSPACE and resolved.backend.kind is not BackendKind.STORE:
        environment["TF_WORKSPACE"] = resolved.workspace
    variables = {}
    if "workspace" in resolved.facts.variables and resolved.backend.kind is BackendKind.STORE:
        variables["workspace"] = resolved.workspace
    return Workdir(
        engine=engine,
        folder=resolved.stack.folder,
        environment=environment,
        variables=variables,
        var_files=(*resolved.values.passed, *inputs.var_files, *resolved.passed_files()),
        redactor=resolved.redactor.with_secrets([*inputs.secrets, key.secret.hex()]),
        data_dir=Workspace.of(settings.base, resolved.target).folder,
        cli_config=resolved.cli_config,
        limits=Limits(lock_wait_s=settings.lock_wait_s),
        refine=_make_refine(resolved),
    )


def _make_refine(resolved: ResolvedStack) -> Callable[[Finding], tuple[Finding, ...]]:
    """Return what makes findings about the user's input of those about the code."""
    refine = InputAddresses(resolved.values, resolved.stack.folder).refine
    is_about_us = None if resolved.model is None else resolved.model.is_about_us
    if is_about_us is None:
        return refine
    return lambda finding: () if is_about_us(finding) else refine(finding)


def _with_backend(
    workdir: Workdir,
    resolved: ResolvedStack,
    backend: Embedded | None,
    served: provider.RunningProvider | None,
) -> Workdir:
    """Give the engine our store, where it is the backend, and the built-in provider, where it is used."""
    environment, redactor = dict(workdir.environment), workdir.redactor
    if backend is not None and resolved.backend.kind is BackendKind.STORE:
        environment |= backend.environment(resolved.target.state_name)
        redactor = redactor.with_secrets([backend.password])
    return replace(
        workdir,
        environment=environment,
        redactor=redactor,
        reattach=None if served is None else served.reattach,
    )


@contextlib.asynccontextmanager
async def _provider(
    resolved: ResolvedStack, settings: RunSettings, objects: Objects
) -> AsyncIterator[provider.RunningProvider | None]:
    """Serve the built-in provider to a stack with Proxmox resources, unless it is to use bpg's."""
    uses_proxmox = any(source.endswith(_PROXMOX) for source in resolved.facts.providers.values())
    if settings.provider is ProviderChoice.BPG or not uses_proxmox:
        yield None
        return
    options = provider.Options(
        environment={
            name: value for name, value in resolved.environment.items() if name.startswith("PROXMOX_VE_")
        },
        journal=objects,
        journal_prefix=layout.journal(resolved.target.state_name),
        state=resolved.target.state_name,
        folder=resolved.stack.folder,
    )
    async with provider.serve(options) as served:
        yield served
