"""`stackyard destroy`: remove what a target or a manifest has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.apply import nothing_result, outcome_result
from stackyard.cli.operator_options import manifest_options, run_options, says_manifest
from stackyard.cli.operators import operate
from stackyard.cli.path_options import Chosen, allowances, permit_options, reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.engine.tofu import PlanMode
from stackyard.errors import UsageError
from stackyard.path.applying import apply_plan
from stackyard.path.planning import Wishes, planned

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["destroy"]


@click.command("destroy", cls=Command)
@click.argument("target", required=False)
@reach_options
@permit_options
@manifest_options
@run_options
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy everything that TARGET has, or that a manifest (-M) has made.

    \b
    stackyard destroy dev --allow-destroy web1
    stackyard destroy -M n1-basic -H lab --yes

    Of a TARGET each guest has to be named with --allow-destroy; without, the refusal lists them with the
    command to repeat. Of a manifest everything goes after one question, what runs inside of its nodes too.
    A protected guest stays: take its protection off first.
    """  # noqa: D301 - click reads the control character
    if says_manifest(values):
        if values["target"] is not None:
            raise UsageError(f"`{values['target']}` and a manifest are named: say one of them.")
        return operate(session, "destroy", values)
    if values["target"] is None:
        raise UsageError("Say what to destroy: a TARGET such as `env:dev`, or a manifest with -M.")
    return session.run(_destroy(session, values))


async def _destroy(session: Session, values: dict[str, Any]) -> Result:
    wishes = Wishes(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    async with (
        Chosen(session, values, by_state=True).run(may_be_empty=True) as run,
        planned(run, wishes) as made,
    ):
        if made.is_nothing:
            return nothing_result(made)
        made.verdict.raise_refusal(f"The destruction of {run.resolved.target}")
        outcome = await apply_plan(run, made, is_verified=False)
    return outcome_result(made, outcome)
