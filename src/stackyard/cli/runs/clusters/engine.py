"""The runs of the verbs of `stackyard infra` that the engine performs by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import events, process
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.engine.tools.find import find_engine
from stackyard.path.clusters.source import CODE_FOLDER, ClusterSource
from stackyard.path.stacks.backend import BackendKind
from stackyard.sources.cluster.kind import CLUSTER

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.cli.session import Session
    from stackyard.engine.workdir import Workdir
    from stackyard.path.stacks.run import StackRun

__all__ = ["EngineCall", "LockNotHeldError", "run_engine"]

# They look at the code alone: no state, no credentials, no provider.
_CODE_ONLY = ("fmt",)
# It prepares the folder itself, as a user of the plain engine has it.
_IN_FOLDER = ("init",)
_NO_COLOUR = "-no-color"
_UNLOCK = "force-unlock"
# What state services answer to the id of a lock that is not held.
_CONFLICT = re.compile(r"HTTP response code (409|423)\b")


class LockNotHeldError(StackyardError):
    """The lock that is to be removed does not lock the state; nothing was removed."""

    code = "E-INFRA-LOCK"
    summary = "The state is not locked by this lock"
    default_remedy = (
        "If a run says that the state is locked, remove the lock whose ID its message has. Otherwise nothing "
        "has to be unlocked: the lock was released since."
    )

    @classmethod
    def of(cls, run: StackRun, lock_id: str) -> LockNotHeldError:
        """Name the lock that is not held, and the one that is, where our own store knows."""
        target = run.resolved.target
        said = f"The lock {lock_id} is not held on the state of {target}"
        if run.resolved.backend.kind is not BackendKind.STORE:
            return cls(f"{said}: the state service refuses to remove it.")
        name = target.state_name
        held = next((one.held for one in run.states.locks.report(name) if one.name == name), None)
        if held is None:
            return cls(f"{said}: no lock is.")
        return cls(f"{said}: {held.info.who or held.principal} holds the lock {held.info.id}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCall:
    """A call of the engine.

    Attributes:
        verb: The verb: `state list`.
        words: Its arguments.
    """

    verb: str
    words: tuple[str, ...]


async def run_engine(session: Session, values: dict[str, Any], call: EngineCall) -> Result:
    """Run a verb of the engine on the code of a cluster, with its credentials and its backend."""
    name, folder = choose_cluster(values["cluster"])
    if call.verb in _CODE_ONLY:
        engine = (await find_engine()).engine
        plain = process.Command(
            argv=(str(engine.path), call.verb, _NO_COLOUR, *call.words),
            env=process.environment({}),
            cwd=folder / CODE_FOLDER,
        )
        return _result(session, call, await process.run(plain, check=False), str)
    target = f"{CLUSTER}:{name}"
    command = StackCommand(session, {**values, "target": target, "engine_words": ()})
    # They work on the state or on the code as it is; neither needs the input.
    command.source = replace(ClusterSource.find(), is_code_current=False)
    chosen = await command.choose(target)
    async with chosen.run(call.verb, is_recorded=False) as run:
        if run.served is not None:
            run.served.begin()
        workdir = replace(run.workdir, data_dir=None) if call.verb in _IN_FOLDER else run.workdir
        completed = await process.run(_command(workdir, call), check=False)
        if completed.returncode and call.verb == _UNLOCK and _CONFLICT.search(str(completed.stderr)):
            raise LockNotHeldError.of(run, call.words[-1])
    return _result(session, call, completed, run.workdir.redactor)


def _command(workdir: Workdir, call: EngineCall) -> process.Command:
    folder: Path = workdir.folder
    return process.Command(
        argv=(str(workdir.engine.path), *call.verb.split(), _NO_COLOUR, *call.words),
        env=workdir.env(),
        cwd=folder,
        redactor=workdir.redactor,
    )


def _result(session: Session, call: EngineCall, completed: process.Completed, redact: Any) -> Result:
    stdout, stderr = redact(completed.stdout), redact(completed.stderr)
    is_done = completed.returncode == 0
    level = events.LogLevel.WARNING if is_done else events.LogLevel.ERROR
    for line in filter(str.strip, stderr.splitlines()):
        session.emit(events.LogLine(level=level, source="engine", text=line))
    return Result(
        document={
            "verb": call.verb,
            "exit_status": completed.returncode,
            "stdout": stdout,
            "stderr": stderr,
        },
        # As the engine wrote it: programs read it, so that warnings are not among it.
        show=lambda writer: writer.text(stdout),
        status=ExitStatus.DONE if is_done else ExitStatus.FAILED,
    )
