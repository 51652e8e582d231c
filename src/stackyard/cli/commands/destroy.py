"""`stackyard destroy`: remove what a target has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.apply import nothing_result, outcome_result
from stackyard.cli.path_options import Chosen, allowances, permit_options, target_options
from stackyard.cli.session import Session, pass_session
from stackyard.engine.tofu import PlanMode
from stackyard.path.applying import apply_plan
from stackyard.path.planning import Wishes, planned

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["destroy"]


@click.command("destroy", cls=Command)
@target_options
@permit_options
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy everything that TARGET has.

    Each guest has to be named with --allow-destroy; without, the refusal lists them with the command to
    repeat. A protected guest stays: take its protection off first.
    """
    return session.run(_destroy(session, values))


async def _destroy(session: Session, values: dict[str, Any]) -> Result:
    wishes = Wishes(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    async with Chosen(session, values).run(may_be_empty=True) as run, planned(run, wishes) as made:
        if made.changes.is_empty:
            return nothing_result(made)
        made.verdict.raise_refusal(f"The destruction of {run.resolved.target}")
        outcome = await apply_plan(run, made, is_verified=False)
    return outcome_result(made, outcome)
