"""Planning a stack: what would change, and what the guard and the user's own rules refuse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import stackyard
from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.engine import tofu
from stackyard.engine.changes import Changes, read_changes
from stackyard.engine.failures import TofuError
from stackyard.engine.plan_archive import read_archive
from stackyard.engine.plan_place import open_plan_place
from stackyard.engine.statefile import read_snapshot
from stackyard.engine.version import Flavour
from stackyard.guard import Verdict, inspect
from stackyard.path.planfile import Binding, PlanFile, is_encrypted, open_encrypted
from stackyard.path.run_state import EmptyInputError
from stackyard.path.stacks.inputs import list_texts
from stackyard.path.stacks.management import judge_management
from stackyard.path.stacks.model import judge_model
from stackyard.path.stacks.visibility import explain_refused_plan, require_visible_stack
from stackyard.state.inside import EncryptedStateError, read_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from stackyard.engine.tofu import PlanMode
    from stackyard.engine.workdir import Workdir
    from stackyard.path.handover import Handover
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.stacks.run import StackRun

__all__ = ["StackPlan", "load_stack_plan", "make_stack_binding", "make_stack_plan", "state_version_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """A plan of a stack, what it does, and what refuses it.

    Attributes:
        path: The engine's plan: in memory, or a file that is encrypted where the engine can.
        workdir: Where the engine works on it.
        changes: What it does.
        verdict: What the guard and the user's own rules say.
        binding: What it was made for.
        notes: What a reader has to know: it is for a part of the stack, or nothing was refreshed.
    """

    path: Path
    workdir: Workdir
    changes: Changes
    verdict: Verdict
    binding: Binding
    notes: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to apply."""
        return self.changes.is_empty

    @property
    def shown(self) -> Changes:
        """What a reader sees of it."""
        return self.changes

    @property
    def handovers(self) -> tuple[Handover, ...]:
        """What leaves other states: a stack takes nothing over from them."""
        return ()

    def saved(self, shown: Mapping[str, Any] | None = None) -> PlanFile:
        """Return it as it is saved.

        Args:
            shown: What a program is shown of it, with secrets masked.
        """
        return PlanFile(binding=self.binding, plan=self.path.read_bytes(), shown=shown or {})


@contextlib.asynccontextmanager
async def make_stack_plan(run: StackRun, plan_request: PlanRequest) -> AsyncIterator[StackPlan]:
    """Plan; the engine's file is there for the length of the block. Nothing is changed, in the state neither.

    Raises:
        EmptyInputError: The code says nothing, and the state holds something.
        NotVisibleError: The cluster does not show what the state has.
        TofuError: Anything that the engine reports.
    """
    target = run.resolved.target
    data = await run.read_state()
    if plan_request.mode is tofu.PlanMode.NORMAL:
        _require_code(run, data)
    with open_plan_place() as place:
        path, workdir = place.path, run.with_plan(place, is_encrypted=place.is_file)
        options = tofu.PlanOptions(
            mode=plan_request.mode,
            targets=plan_request.targets,
            parallelism=run.settings.parallelism,
            passed_on=run.resolved.arguments.words,
        )
        with events.step(run.emit, f"plan {target}", f"Planning {target}"):
            if run.served is not None:
                run.served.begin()
            async with _explaining(run, data):
                ended = await tofu.plan(workdir, path, options=options, emit=run.emit)
            is_empty = ended.outcome is tofu.PlanOutcome.NO_CHANGES and not plan_request.unchanged
            document = None if is_empty else await _read_plan(run, workdir, path)
        run = _with_former_secrets(run, data)
        changes = _changes_of(run, document)
        await require_visible_stack(run, data, changes, plan_request.mode)
        yield StackPlan(
            path=path,
            workdir=workdir,
            changes=changes,
            verdict=await _judge(run, plan_request, document, data),
            binding=make_stack_binding(run, plan_request.mode, data),
            notes=run.resolved.arguments.notes,
        )


@contextlib.asynccontextmanager
async def _explaining(run: StackRun, data: bytes | None) -> AsyncIterator[None]:
    """Say why a plan failed, where the engine says only that a call was refused."""
    try:
        yield
    except TofuError as err:
        await explain_refused_plan(run, data, err)
        raise


@contextlib.asynccontextmanager
async def load_stack_plan(
    run: StackRun, saved: PlanFile, plan_request: PlanRequest
) -> AsyncIterator[StackPlan]:
    """Open a saved plan; the guard judges what is in the file.

    Raises:
        PlanMovedError: Something that it was made for has moved.
        TofuError: The engine cannot read it.
    """
    data = await run.read_state()
    now = make_stack_binding(run, plan_request.mode, data)
    run = _with_former_secrets(run, data)
    # What was passed on is in the plan: nobody passes it on again.
    saved.binding.require(replace(now, arguments=saved.binding.arguments))
    with open_plan_place() as place:
        path, workdir = place.path, run.with_plan(place, is_encrypted=is_encrypted(saved.plan))
        if place.is_file:
            path.touch(mode=0o600)
        path.write_bytes(saved.plan)
        with events.step(
            run.emit, f"plan {run.resolved.target}", f"Reading the plan of {run.resolved.target}"
        ):
            document = await _read_plan(run, workdir, path)
        yield StackPlan(
            path=path,
            workdir=workdir,
            changes=_changes_of(run, document),
            verdict=await _judge(run, plan_request, document, data),
            binding=saved.binding,
            notes=tuple(saved.shown.get("notes", ())),
        )


def make_stack_binding(run: StackRun, mode: PlanMode, state: bytes | None) -> Binding:
    """Return what a plan that is made now is made for."""
    target = run.resolved.target
    return Binding(
        target=str(target),
        state_name=target.state_name,
        input=run.resolved.digest(run.key, run.inputs),
        state=state_version_of(state),
        code=stackyard.__version__,
        engine=f"{run.engine.flavour.label} {run.engine.version}",
        provider=run.settings.provider.value,
        mode=mode.value,
        inputs=run.inputs.binding,
        arguments=run.resolved.arguments.describe(run.key.secret),
    )


def state_version_of(data: bytes | None) -> str:
    """Return which version a state has, empty where there is none yet.

    Raises:
        InvalidInputError: It is no state.
    """
    if data is None:
        return ""
    try:
        found = read_snapshot(data)
    except ValueError as err:
        raise InvalidInputError(f"The state of the stack cannot be read: {err}.") from err
    return f"{found.lineage}/{found.serial}"


async def _read_plan(run: StackRun, workdir: Workdir, path: Path) -> Mapping[str, Any]:
    """Return a plan as `tofu show -json` gives it; from its file where the form of that is known."""
    if run.engine.flavour is Flavour.TOFU and not run.resolved.stack.settings.policy:
        document = await asyncio.to_thread(_read_archive, run, path)
        if document is not None:
            return document
    return await tofu.show_plan(workdir, path)


def _read_archive(run: StackRun, path: Path) -> Mapping[str, Any] | None:
    content = path.read_bytes()
    data = open_encrypted(content, run.key) if is_encrypted(content) else content
    schemas = {} if run.served is None else run.served.schemas
    return None if data is None else read_archive(data, schemas)


def _with_former_secrets(run: StackRun, data: bytes | None) -> StackRun:
    """Return a run that also hides what the state has as sensitive: the files may say otherwise by now."""
    redactor = run.workdir.redactor.with_secrets(_list_sensitive(data))
    return replace(run, workdir=replace(run.workdir, redactor=redactor))


def _list_sensitive(data: bytes | None) -> Iterator[str]:
    try:
        instances = read_view(data).instances.values() if data is not None else ()
    except EncryptedStateError:
        return
    for one in instances:
        for path in one.sensitive:
            value: Any = one.attributes
            for step in path:
                is_there = isinstance(value, Mapping | list) and (
                    step in value if isinstance(value, Mapping) else step in range(len(value))
                )
                value = value[step] if is_there else None
            yield from list_texts(value)


def _changes_of(run: StackRun, document: Mapping[str, Any] | None) -> Changes:
    if document is None:
        return Changes(planned=())
    return read_changes(document).redact(run.workdir.redactor)


async def _judge(
    run: StackRun, plan_request: PlanRequest, document: Mapping[str, Any] | None, state: bytes | None
) -> Verdict:
    resolved = run.resolved
    changes = _changes_of(run, document)
    if resolved.model is not None:
        return await judge_model(run, resolved.model, plan_request, changes, state)
    verdict = inspect(changes, plan_request.allowances, protected=resolved.stack.settings.protected)
    verdict = verdict.join(await judge_management(run, changes, plan_request.allowances))
    if resolved.stack.settings.policy and document is not None:
        from stackyard.guard.policy import evaluate_policies  # lazy: few stacks have rules of their own

        context = {
            "target": str(resolved.target),
            "mode": plan_request.mode.value,
            "stack": {
                "name": resolved.stack.name,
                "path": resolved.stack.path,
                "layer": resolved.stack.layer,
                "tags": list(resolved.stack.settings.tags),
                "workspace": resolved.workspace,
            },
        }
        verdict = verdict.join(
            await evaluate_policies(
                document,
                resolved.stack.settings.policy,
                context=context,
                allowances=plan_request.allowances,
                redactor=run.workdir.redactor,
            )
        )
    return verdict


def _require_code(run: StackRun, data: bytes | None) -> None:
    """Refuse code that declares nothing for a state that holds something: all of it would be destroyed."""
    if data is None or not run.resolved.is_empty():
        return
    try:
        held = [one for one in read_view(data).instances.values() if one.mode == "managed"]
    except EncryptedStateError:
        held = []
    if held:
        target = run.resolved.target
        raise EmptyInputError(
            f"The code of {target} declares no resource and no module, and its state holds {len(held)}.",
            remedy=f"Check that the files are whole; or remove it all: stackyard destroy {target}",
        )
