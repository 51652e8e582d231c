"""Destroying stacks that were applied and whose folders are gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.cli.runs.plan_options import allowances
from stackyard.cli.runs.stacks.apply_one import apply_stack
from stackyard.cli.runs.stacks.chosen import ChosenStack
from stackyard.cli.runs.stacks.selection import find_removed
from stackyard.engine.tofu import PlanMode
from stackyard.guard import Permit
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.plan_request import PlanRequest
from stackyard.path.stacks.backend import BackendKind
from stackyard.path.stacks.many import StackOutcome, StackStatus
from stackyard.path.stacks.removed import (
    ProtectedStackGoneError,
    StackGoneError,
    restore_code,
    was_protected,
)
from stackyard.path.stacks.source import StackSource, split_workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.runs.stacks.apply_one import AppliedStack
    from stackyard.cli.runs.stacks.chosen import StackCommand
    from stackyard.state.targets import TargetRecord

__all__ = ["RemovedStackError", "destroy_all_removed", "destroy_removed", "require_not_removed"]


class RemovedStackError(StackyardError):
    """The folder of an applied stack was removed, and --allow-destroy does not name the stack."""

    code = "E-STACK-REMOVED"
    summary = "A stack was removed, but its resources still exist"
    default_remedy = "Restore its folder; or destroy its resources: --allow-destroy stack:NAME."


def require_not_removed(command: StackCommand, named: str) -> None:
    """Refuse to plan or apply a stack whose folder is gone.

    Raises:
        RemovedStackError: It was applied and removed; the error says how to destroy what it has.
    """
    record = find_removed(command.source.repository, command.store, named)
    if record is not None:
        raise RemovedStackError(
            f"The folder {record.path} of {record.target} was removed, but its resources still exist.",
            remedy=f"Restore the folder; or destroy its resources: stackyard destroy {record.target}",
        )


async def destroy_all_removed(
    command: StackCommand, records: Sequence[TargetRecord]
) -> tuple[StackOutcome, ...]:
    """Destroy what removed stacks have, the last applied first; one that is not named is refused.

    Args:
        command: The command.
        records: What was applied of them.
    """
    permits = allowances(command.values).permits
    found = []
    for record in sorted(records, key=lambda one: -one.applied_at):
        began_s = time.monotonic()
        try:
            if Permit(option=ALLOW_DESTROY, name=record.target) not in permits:
                raise RemovedStackError(
                    f"{record.path} was removed, but the state of {record.target} still has resources.",
                    remedy=f"Restore the folder; or destroy them with {ALLOW_DESTROY} {record.target}",
                )
            ended = await destroy_removed(command, record, is_acknowledged=True)
        except StackyardError as err:
            is_refused = isinstance(err, RemovedStackError)
            status = StackStatus.REFUSED if is_refused else StackStatus.FAILED
            found.append(StackOutcome(name=record.name, status=status, error=err))
            continue
        found.append(
            StackOutcome(
                name=record.name,
                status=StackStatus.UNCHANGED if ended.applied is None else StackStatus.APPLIED,
                plan=ended.made,
                applied=ended.applied,
                redact=ended.run.workdir.redactor,
                elapsed_s=time.monotonic() - began_s,
            )
        )
    return tuple(found)


async def destroy_removed(
    command: StackCommand, record: TargetRecord, *, is_acknowledged: bool = False
) -> AppliedStack:
    """Destroy what a removed stack has, with the code of the last commit that had it.

    Args:
        command: The command.
        record: What was applied.
        is_acknowledged: Whether everything in it may go; else each resource must be permitted.

    Raises:
        StackGoneError: Its code or its state is not to be found.
        ProtectedStackGoneError: It was protected to its end.
        StackyardError: As for any stack.
    """
    name, workspace = split_workspace(record.name)
    if await was_protected(command.source.repository.root, record):
        raise ProtectedStackGoneError(
            f"{record.target} was protected when its folder {record.path} was removed."
        )
    async with restore_code(command.source.repository.root, record) as (folder, _):
        source = StackSource.find(folder)
        resolved = await source.resolve(name, workspace)
        if resolved.backend.kind is BackendKind.LOCAL:
            raise StackGoneError(f"The state of {record.target} was a file in its folder {record.path}.")
        plan_request = PlanRequest(
            mode=PlanMode.DESTROY, allowances=allowances(command.values, everything=True)
        )
        chosen = ChosenStack(command, resolved, source)
        return await apply_stack(command, chosen, plan_request, is_acknowledged=is_acknowledged)
