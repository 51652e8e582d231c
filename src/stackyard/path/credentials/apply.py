"""What an apply does beside the engine."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from stackyard.engine import tofu
from stackyard.engine.changes import Action
from stackyard.path.credentials.perform import CredentialWorker
from stackyard.path.credentials.record import change_record, make_fingerprint, read_record
from stackyard.path.credentials.rows import CredentialKind

if TYPE_CHECKING:
    from stackyard.path.credentials.perform import LoginSession
    from stackyard.path.credentials.rows import CredentialPlan
    from stackyard.path.run import Run

__all__ = ["add_counts", "record_kept", "remove_credentials", "set_credentials"]


async def remove_credentials(run: Run, plan: CredentialPlan) -> None:
    """Remove tokens and their roles, before the engine removes what they belong to.

    Raises:
        ProxmoxError: A call failed.
        StackyardError: The secrets or the record cannot be written.
    """
    worker = _make_worker(run)
    if worker is not None:
        await worker.remove(plan)


async def set_credentials(run: Run, plan: CredentialPlan, login: LoginSession | None) -> tofu.Applied:
    """Set tokens, their roles and passwords, once the engine has made what they belong to.

    Returns:
        What was created, changed and removed, here and by `remove_credentials`.

    Raises:
        ProxmoxError: A call failed; the next run continues from there.
        StackyardError: The secrets or the record cannot be written.
    """
    worker = _make_worker(run)
    if worker is not None:
        await worker.set(plan)
        for step in plan.steps:
            if step.password is not None and login is not None:
                value = run.resolved.secrets.reveal(step.password.secret)
                await worker.set_password(
                    step.name, value, make_fingerprint(step.name, value, run.key), login
                )
        await asyncio.to_thread(record_kept, run, plan)
    actions = [step.change.action for step in plan.steps]
    counts = {action: actions.count(action) for action in Action}
    renewed = sum(
        step.change.action is Action.REPLACE for step in plan.steps if step.kind is CredentialKind.TOKEN
    )
    return tofu.Applied(
        add=counts[Action.CREATE] + renewed,
        change=counts[Action.UPDATE],
        remove=counts[Action.DELETE] + renewed,
        imported=sum(step.change.imported_as is not None for step in plan.steps),
    )


def add_counts(one: tofu.Applied, other: tofu.Applied) -> tofu.Applied:
    """Return what both changed."""
    return dataclasses.replace(
        one,
        add=one.add + other.add,
        change=one.change + other.change,
        remove=one.remove + other.remove,
        imported=one.imported + other.imported,
    )


def _make_worker(run: Run) -> CredentialWorker | None:
    if run.resolved.tokens is None:
        return None
    return CredentialWorker(
        client=run.client,
        targets=run.states.targets,
        target=run.resolved.target,
        store=run.resolved.tokens,
        emit=run.emit,
    )


def record_kept(run: Run, plan: CredentialPlan) -> None:
    """Record what leaves the state and stays on the cluster; what a login has made is in the state now.

    Raises:
        StoreError: It cannot be stored.
    """
    targets, target = run.states.targets, run.resolved.target
    if read_record(targets, target).imports != plan.kept.objects:
        imports = plan.kept.objects
        change_record(targets, target, lambda known: dataclasses.replace(known, imports=imports))
