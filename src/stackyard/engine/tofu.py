"""The engine's verbs on a configuration, one typed function each: init, validate, plan, show, apply, output.

No policy lives here: what may be planned or applied is for `guard` and `path` to say. Every verb runs in a
`Workdir`, without questions and without colour, and reads JSON alone. The verbs on the state itself are in
`stackyard.engine.statefile`, the engine's version in `stackyard.engine.version`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, events
from stackyard.base.errors import FileError
from stackyard.engine import invoke
from stackyard.engine.errored import keep_errored_state, refuse_errored_state
from stackyard.engine.failures import StateNotSavedError
from stackyard.engine.plan_place import is_in_memory
from stackyard.engine.version import EngineBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.engine.workdir import Workdir

__all__ = [
    "PLAIN_INIT",
    "PLAIN_PLAN",
    "Applied",
    "InitOptions",
    "Lockfile",
    "PlanMode",
    "PlanOptions",
    "PlanOutcome",
    "SavedPlan",
    "TofuOutput",
    "apply",
    "destroy",
    "init",
    "output",
    "plan",
    "providers_schema",
    "show_plan",
    "show_state",
    "validate",
]

_NO_QUESTIONS = "-input=false"


class Lockfile(enum.StrEnum):
    """What init may do to the dependency lock file (.terraform.lock.hcl)."""

    ADD = "add"  # select what is missing, keep what is there
    READONLY = "readonly"  # fail rather than write
    REFRESH = "refresh"  # select the newest versions that the configuration allows


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """How to initialise.

    Attributes:
        backend_config: Files with settings of the backend; secrets of it go through the environment.
        lockfile: What may happen to the dependency lock file.
        reconfigure: Whether to forget the backend used so far, without moving its state.
    """

    backend_config: tuple[Path, ...] = ()
    lockfile: Lockfile = Lockfile.ADD
    reconfigure: bool = False


PLAIN_INIT = InitOptions()


class PlanMode(enum.StrEnum):
    """What a plan is for."""

    NORMAL = "normal"
    DESTROY = "destroy"
    REFRESH_ONLY = "refresh-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How to plan.

    Attributes:
        mode: What the plan is for.
        refresh: Whether to read the real resources first.
        targets: Plan for these addresses and what they depend on, nothing else.
        replace: Replace these instances even where nothing about them changed.
        parallelism: How many operations at once; the engine's own number when absent.
        passed_on: More arguments, as the user gave them.
    """

    mode: PlanMode = PlanMode.NORMAL
    refresh: bool = True
    targets: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    parallelism: int | None = None
    passed_on: tuple[str, ...] = ()


PLAIN_PLAN = PlanOptions()


class PlanOutcome(enum.StrEnum):
    """How a plan ended; the third of the engine's exit codes is an error."""

    NO_CHANGES = "no-changes"
    CHANGES = "changes"


_OUTCOMES = {0: PlanOutcome.NO_CHANGES, 2: PlanOutcome.CHANGES}


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan in a file, which holds every secret in clear."""

    path: Path
    outcome: PlanOutcome
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What an apply changed."""

    add: int
    change: int
    remove: int
    imported: int
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TofuOutput:
    """An output value; its representation never shows a sensitive one.

    Attributes:
        value: What it is.
        sensitive: Whether it must not be shown.
        type: Its type in the engine's JSON spelling.
    """

    value: Any
    sensitive: bool
    type: Any

    def __repr__(self) -> str:
        shown = "(sensitive)" if self.sensitive else repr(self.value)
        return f"TofuOutput(value={shown}, type={self.type!r})"


async def init(
    workdir: Workdir, options: InitOptions = PLAIN_INIT, *, emit: events.Emit = events.ignore
) -> None:
    """Prepare the folder: backend, modules, providers.

    Raises:
        ProviderLockError: The dependency lock file does not fit; `Lockfile.REFRESH` would renew it.
        RegistryUnreachableError: A provider or module cannot be downloaded.
        BackendUnreachableError: The state cannot be reached.
        TofuError: Anything else that the engine reports.
    """
    # The engine writes the backend's settings in there, secrets included.
    directories.ensure_private(workdir.data_folder)
    args = [_NO_QUESTIONS, invoke.lock_wait(workdir)]
    args += [f"-backend-config={_from_anywhere(path)}" for path in options.backend_config]
    if options.lockfile is Lockfile.REFRESH:
        args.append("-upgrade")
    if options.lockfile is Lockfile.READONLY:
        args.append("-lockfile=readonly")
    if options.reconfigure:
        args.append("-reconfigure")
    await invoke.run_stream(invoke.Answer(workdir, emit), "init", tuple(args))


async def validate(workdir: Workdir) -> tuple[Diagnostic, ...]:
    """Check the configuration without reading state or resources; return all that is wrong with it.

    Raises:
        TofuError: It could not be checked.
    """
    try:
        found = await invoke.read_findings(workdir, "validate", accepted=(0, 1))
    except (KeyError, TypeError, AttributeError) as err:
        raise _unknown_form(workdir, "validate") from err
    return tuple(finding.diagnostic() for finding in found)


async def plan(
    workdir: Workdir, out: Path, *, options: PlanOptions = PLAIN_PLAN, emit: events.Emit = events.ignore
) -> SavedPlan:
    """Plan to a file, which appears whole and readable by its owner alone, or not.

    Raises:
        StateLockedError: Another run holds the state.
        InitNeededError: The folder is not initialised.
        TofuError: Anything else that the engine reports.
        FileError: The file cannot be written.
    """
    answer = invoke.Answer(workdir, emit)
    with contextlib.nullcontext(out) if is_in_memory(out) else _private_file(out) as unfinished:
        args = (_NO_QUESTIONS, invoke.lock_wait(workdir), "-detailed-exitcode", *_plan_args(options))
        await invoke.run_stream(answer, "plan", (*args, f"-out={unfinished}"), accepted=tuple(_OUTCOMES))
        _require_content(workdir, unfinished)
    return SavedPlan(path=out, outcome=_OUTCOMES[answer.status], warnings=_diagnostics(answer))


async def show_plan(workdir: Workdir, path: Path) -> Mapping[str, Any]:
    """Return a saved plan in the engine's JSON format; it holds every secret in clear."""
    return await invoke.read_document(workdir, "show", (_from_anywhere(path),))


async def show_state(workdir: Workdir) -> Mapping[str, Any]:
    """Return the current state in the engine's JSON format; it holds every secret in clear."""
    return await invoke.read_document(workdir, "show")


async def apply(
    workdir: Workdir,
    path: Path,
    *,
    parallelism: int | None = None,
    passed_on: tuple[str, ...] = (),
    emit: events.Emit = events.ignore,
) -> Applied:
    """Apply a saved plan, and nothing else.

    Values of variables that were passed on to the plan (`passed_on`) have to be given again, so that those in
    the variables files of the folder do not contradict the plan.

    When the task is cancelled the engine gets an interrupt and the grace of the limits to store its state.

    Raises:
        PlanStaleError: The state has changed since the plan was made; nothing was applied.
        StateLockedError: Another run holds the state; nothing was applied.
        ErroredStateError: The state of an earlier apply is not stored yet; nothing was applied.
        StateNotSavedError: The changes were made, and the new state is in a file.
        TofuError: Some changes failed, each reported; the others were applied and stored.
    """
    refuse_errored_state(workdir)
    args = [_NO_QUESTIONS, invoke.lock_wait(workdir)]
    if parallelism is not None:
        args.append(f"-parallelism={parallelism}")
    answer = invoke.Answer(workdir, emit)
    try:
        await invoke.run_stream(answer, "apply", (*args, *passed_on, _from_anywhere(path)))
    except BaseException as err:
        # Whatever ended the run, a cancelled task too: a state that was stored nowhere must not go with it.
        kept = keep_errored_state(workdir, answer.dumped_state)
        if isinstance(err, StateNotSavedError):
            raise StateNotSavedError(err.detail, err.findings, kept_in=kept) from err
        raise
    if answer.counted is None or answer.counted.operation == "plan":
        raise EngineBrokenError(
            f"{invoke.name(workdir, 'apply')} ended well but did not say what it changed."
        )
    return Applied(
        add=answer.counted.add,
        change=answer.counted.change,
        remove=answer.counted.remove,
        imported=answer.counted.imported,
        warnings=_diagnostics(answer),
    )


async def destroy(
    workdir: Workdir, *, options: PlanOptions = PLAIN_PLAN, emit: events.Emit = events.ignore
) -> Applied:
    """Destroy everything in the state, or the targets.

    It plans to a private file and applies that, so what was reported is what goes: a state that changes in
    between is an error, where the engine's own `destroy` would look again.

    Raises:
        TofuError: As for `plan` and `apply`.
    """
    options = dataclasses.replace(options, mode=PlanMode.DESTROY)
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        planned = await plan(workdir, Path(folder) / "destroy.tfplan", options=options, emit=emit)
        return await apply(workdir, planned.path, parallelism=options.parallelism, emit=emit)


async def output(workdir: Workdir) -> dict[str, TofuOutput]:
    """Return the output values of the state, sensitive ones included.

    Raises:
        TofuError: The state cannot be read.
    """
    document = await invoke.read_document(workdir, "output")
    try:
        return {
            name: TofuOutput(value=item["value"], sensitive=bool(item["sensitive"]), type=item["type"])
            for name, item in document.items()
        }
    except (KeyError, TypeError) as err:
        raise _unknown_form(workdir, "output") from err


async def providers_schema(workdir: Workdir) -> Mapping[str, Any]:
    """Return the schemas of all providers of the configuration, in the engine's JSON format."""
    return await invoke.read_document(workdir, "providers schema")


def _from_anywhere(path: Path) -> str:
    """Spell a path so that it means the same in the folder of the engine."""
    return str(path.absolute())


def _plan_args(options: PlanOptions) -> list[str]:
    args = [f"-target={address}" for address in options.targets]
    args += [f"-replace={address}" for address in options.replace]
    if options.mode is not PlanMode.NORMAL:
        args.append(f"-{options.mode.value}")
    if not options.refresh:
        args.append("-refresh=false")
    if options.parallelism is not None:
        args.append(f"-parallelism={options.parallelism}")
    return [*args, *options.passed_on]


def _require_content(workdir: Workdir, path: Path) -> None:
    if path.stat().st_size == 0:
        raise EngineBrokenError(f"{invoke.name(workdir, 'plan')} ended well but wrote no plan.")


def _diagnostics(answer: invoke.Answer) -> tuple[Diagnostic, ...]:
    return tuple(finding.diagnostic() for finding in answer.findings)


def _unknown_form(workdir: Workdir, verb: str) -> EngineBrokenError:
    return EngineBrokenError(f"{invoke.name(workdir, verb)} printed JSON in a form that is not known.")


@contextlib.contextmanager
def _private_file(path: Path) -> Iterator[Path]:
    """Give an empty file that only its owner can read; it gets its name when all went well.

    The engine makes a plan file for everyone to read, but keeps the mode of one that is there.
    """
    directories.ensure_private(path.parent)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent.absolute(), prefix=f".{path.name}.")
        os.close(descriptor)
        try:
            yield Path(name)
            os.replace(name, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
    except OSError as err:
        raise FileError.from_os_error(err, "write", path) from err
