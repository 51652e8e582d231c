"""Everything that the engine needs to work on one target, in place for the length of a block."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

import stackyard
from stackyard import provider
from stackyard.base import events
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError
from stackyard.clients import proxmox
from stackyard.desired import problems
from stackyard.engine import tofu
from stackyard.engine.alone import work_alone
from stackyard.engine.tools.find import find_engine
from stackyard.engine.workdir import Limits, Workdir
from stackyard.path.adjustments import list_expected_values
from stackyard.path.bpg_login import with_bpg_logins
from stackyard.path.known_state import has_resources
from stackyard.path.planfile import encryption
from stackyard.path.port_probe import PortProbe, port_probes, probe_directly
from stackyard.path.provider_environment import bpg_environment, provider_environment
from stackyard.path.run_input import RunInput, prepare, render_target, secret_values
from stackyard.path.run_state import EmptyInputError, hold_lock, recover_state, state_version
from stackyard.path.settings import ProviderChoice, RunSettings, read_cli_config_path
from stackyard.path.source_locations import SourceLocations
from stackyard.path.workspace import Workspace, input_digest
from stackyard.render import Provider, Rendered
from stackyard.state import StateService, layout
from stackyard.state.embedded import serve_embedded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.desired import Desired
    from stackyard.engine.version import Engine
    from stackyard.path.planfile import PlanKey
    from stackyard.path.target import Resolved
    from stackyard.state.embedded import Embedded
    from stackyard.state.run_lock import RunLock

__all__ = [
    "InputChangedError",
    "ProviderChoice",
    "Run",
    "RunSettings",
    "open_run",
    "read_cli_config_path",
]

# What a plan does beside the configuration, beside it in the folder.
_BLOCKS_FILE = "adjustments.tf.json"

CONTRADICTION = Kind(
    code="E-DESIRED-CONTRADICTION",
    summary="Parts of the desired state contradict each other",
    remedy="Correct one of the parts that the finding names.",
)


class InputChangedError(InvalidInputError):
    """While a run waited for its lock, the input was changed so that the target belongs to another state."""

    code = "E-INPUT-CHANGED"
    summary = "The input changed while the run waited"
    default_remedy = "Run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A target that the engine can work on.

    Attributes:
        resolved: The target.
        settings: How to run.
        workdir: Where the engine works, and its surroundings.
        client: Speaks to the cluster.
        rendered: The configuration of the target as the input says it.
        keys: The keys of saved plans; the first is the one of this run.
        input_digest: The fingerprint of what should be there.
        served: The built-in provider, where it is used.
        states: The states.
        lock: The lock on the state, held from before the input was read.
        probe_port: Tries ports of guests, from where they can be reached.
        emit: Takes the events.
    """

    resolved: Resolved
    settings: RunSettings
    workdir: Workdir
    client: proxmox.Client
    rendered: Rendered
    keys: tuple[PlanKey, ...]
    input_digest: str
    served: provider.RunningProvider | None
    states: StateService
    lock: RunLock
    probe_port: PortProbe = probe_directly
    emit: events.Emit = field(default=events.ignore)

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self.workdir.engine

    @property
    def endpoint(self) -> str:
        """The address of the API."""
        return self.resolved.connection.endpoint

    @property
    def key(self) -> PlanKey:
        """The key that plans of this run are encrypted with."""
        return self.keys[0]

    def with_key(self, key: PlanKey) -> Run:
        """Return the same run with a key that a saved plan was encrypted with, as after a rotation."""
        if key == self.key:
            return self
        environment = {**self.workdir.environment, **encryption(self.engine, key)}
        return replace(
            self,
            keys=(key, *(one for one in self.keys if one != key)),
            input_digest=input_digest(self.rendered, secret_values(self.resolved, self.rendered), key),
            workdir=replace(
                self.workdir,
                environment=environment,
                redactor=self.workdir.redactor.with_secrets([key.secret.hex()]),
            ),
        )

    def configure(self, desired: Desired, blocks: Mapping[str, Any]) -> None:
        """Make the configuration in the folder of the engine that of a model.

        Args:
            desired: The model: that of the input, or one that was fitted to what exists.
            blocks: What the plan has to do besides, by the kind of block: `moved`, `import`.

        Raises:
            FileError: The folder cannot be written.
        """
        is_input = desired is self.resolved.desired
        rendered = self.rendered if is_input else render_target(self.resolved, desired)
        if self.served is not None:
            self.served.expected.clear()
            self.served.expected.update(list_expected_values(rendered, blocks))
        if blocks:
            more = orjson.dumps(blocks, option=orjson.OPT_INDENT_2)
            rendered = replace(rendered, files={**rendered.files, _BLOCKS_FILE: more})
        Workspace.of(self.settings.base, self.resolved.target).write(rendered)

    def state_version(self) -> str:
        """Return which version the state has, empty where there is none yet."""
        return state_version(self.states, self.resolved.target.state_name)


@contextlib.asynccontextmanager
async def open_run(
    resolved: Resolved,
    settings: RunSettings,
    *,
    emit: events.Emit = events.ignore,
    may_be_empty: bool = False,
    reread: Callable[[], Resolved] | None = None,
) -> AsyncIterator[Run]:
    """Lock the state, read the input once more, and put everything in place.

    Args:
        resolved: The target.
        settings: How to run.
        emit: Takes the events.
        may_be_empty: Whether an input without anything is meant, as when everything is to be destroyed.
        reread: Returns the target as the input says it now. It is called under the lock: what was written
            while another run was waited for counts.

    Raises:
        EmptyInputError: Nothing should be there, and the state holds something.
        InputChangedError: The input now belongs to another state.
        InvalidInputError: Parts of the input contradict each other.
        StateLockedError: Another run holds the state for longer than we wait.
        StackyardError: The engine, the state or the cluster cannot be used.
    """
    _require_sense(resolved)
    engine = (await find_engine()).engine
    with contextlib.closing(settings.store.open()) as objects:
        states, name = StateService(objects), resolved.target.state_name
        async with (
            serve_embedded(states, prefix=name, emit=emit) as backend,
            hold_lock(backend, name, settings) as lock,
        ):
            if reread is not None:
                resolved = await _read_again(resolved, reread)
                _require_sense(resolved)
            if settings.provider is ProviderChoice.BPG:
                resolved = with_bpg_logins(resolved)
            if not may_be_empty:
                await asyncio.to_thread(_require_input, resolved, states)
            locked = _LockedEngine(engine=engine, states=states, backend=backend, lock=lock)
            async with _run(resolved, settings, locked, emit) as run:
                yield run


@dataclass(frozen=True, slots=True, kw_only=True)
class _LockedEngine:
    """The engine, and the state that is locked for it."""

    engine: Engine
    states: StateService
    backend: Embedded
    lock: RunLock


@contextlib.asynccontextmanager
async def _run(
    resolved: Resolved, settings: RunSettings, locked: _LockedEngine, emit: events.Emit
) -> AsyncIterator[Run]:
    """Put everything in place around a state that is locked."""
    prepared = await asyncio.to_thread(prepare, resolved, settings, locked.states.objects, emit)
    async with (
        proxmox.Client(resolved.connection) as client,
        _provider(resolved, settings, locked.states.objects) as served,
        port_probes(resolved.jump) as probe_port,
        contextlib.AsyncExitStack() as stack,
    ):
        credentials = await _credentials(resolved, settings, prepared.workspace.folder)
        plain = _workdir(locked.engine, resolved, settings, prepared, locked.backend, served)
        workdir = await stack.enter_async_context(work_alone(plain, prepared.workspace.folder, emit))
        await _initialise(prepared.workspace, workdir, resolved, settings, emit)
        # Only now: preparing needs no credentials, and downloads providers with the system's trust.
        workdir = replace(workdir, environment={**workdir.environment, **credentials})
        await recover_state(workdir, resolved.target.state_name, emit)
        yield Run(
            resolved=resolved,
            settings=settings,
            workdir=workdir,
            client=client,
            rendered=prepared.rendered,
            keys=prepared.keys,
            input_digest=prepared.digest,
            served=served,
            states=locked.states,
            lock=locked.lock,
            probe_port=probe_port,
            emit=emit,
        )


async def _read_again(resolved: Resolved, reread: Callable[[], Resolved]) -> Resolved:
    now = await asyncio.to_thread(reread)
    before, after = resolved.target.state_name, now.target.state_name
    if before != after:
        raise InputChangedError(f"{resolved.target} belonged to the state {before}, and now to {after}.")
    return now


def _workdir(
    engine: Engine,
    resolved: Resolved,
    settings: RunSettings,
    prepared: RunInput,
    backend: Embedded,
    served: provider.RunningProvider | None,
) -> Workdir:
    name = resolved.target.state_name
    return Workdir(
        engine=engine,
        folder=prepared.workspace.folder,
        environment={**backend.environment(name), **encryption(engine, prepared.keys[0])},
        variables=prepared.values,
        redactor=resolved.redactor.with_secrets([*prepared.secrets, backend.password]),
        reattach=served.reattach if served is not None else None,
        cli_config=settings.cli_config,
        limits=Limits(lock_wait_s=settings.lock_wait_s),
        locate=SourceLocations(resolved, prepared.workspace.folder),
    )


def _require_input(resolved: Resolved, states: StateService) -> None:
    """Refuse an input with nothing in it for a state that holds something: too much would be destroyed."""
    name = resolved.target.state_name
    is_empty = resolved.desired.is_empty and not resolved.code.declares
    if is_empty and has_resources(states, name):
        raise EmptyInputError(
            f"{resolved.target} says that nothing should be there, and the state {name} holds something.",
            remedy=f"Check that the input is whole; or remove it all: stackyard destroy {resolved.target}",
        )


def _require_sense(resolved: Resolved) -> None:
    found = Diagnostics()
    for problem in problems(resolved.desired):
        found.add(CONTRADICTION, problem.text)
    found.raise_errors(str(resolved.target))


async def _credentials(resolved: Resolved, settings: RunSettings, folder: Path) -> Mapping[str, str]:
    """Return the environment of bpg's provider; the built-in one gets its settings in this process."""
    if settings.provider is not ProviderChoice.BPG:
        return {}
    return await bpg_environment(resolved, folder)


@contextlib.asynccontextmanager
async def _provider(
    resolved: Resolved, settings: RunSettings, objects: Objects
) -> AsyncIterator[provider.RunningProvider | None]:
    if settings.provider is ProviderChoice.BPG:
        yield None
        return
    options = provider.Options(
        environment=provider_environment(resolved),
        journal=objects,
        journal_prefix=layout.journal(resolved.target.state_name),
        state=resolved.target.state_name,
        folder=Workspace.of(settings.base, resolved.target).folder,
        logins={} if resolved.ssh is None else resolved.ssh.logins,
        other_login=None if resolved.ssh is None else resolved.ssh.other,
    )
    async with provider.serve(options) as served:
        yield served


async def _initialise(
    workspace: Workspace, workdir: Workdir, resolved: Resolved, settings: RunSettings, emit: events.Emit
) -> None:
    """Let the engine prepare its folder, unless it did so for the same things before."""
    wanted, needs = Provider(), resolved.code.describe_needs()
    stamp = f"{stackyard.__version__} {workdir.engine} {settings.provider} {wanted.version} {needs}".strip()
    if workspace.drop_stale_lock(wanted.source, wanted.version):
        text = f"The provider was chosen for another version of stackyard; {wanted.version} is chosen now."
        emit(events.LogLine(level=events.LogLevel.INFO, source="init", text=text))
    if workspace.is_initialised(stamp):
        return
    with events.step(emit, "init", f"Preparing {workdir.engine.flavour.label}"):
        # The state is with the service, whichever engine the folder was for before: there is nothing to move.
        await tofu.init(workdir, tofu.InitOptions(reconfigure=True), emit=emit)
    workspace.mark_initialised(stamp)
