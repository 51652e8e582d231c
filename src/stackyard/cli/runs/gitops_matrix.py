"""The runs of jobs of a matrix: `stackyard gitops targets`, and `plan` of some targets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.gitops import open_context, plan_result
from stackyard.gitops.matrix import Share, plan_some, select_targets

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["run_gitops_some", "run_gitops_targets"]

_PART = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


async def run_gitops_targets(session: Session, values: dict[str, Any]) -> Result:
    """List what is to be planned."""
    async with open_context(session, values) as context:
        names = await select_targets(context, values["number"], force=values["force"])
    most = values["most"] or len(names)
    listed = names[:most]
    document = {"number": values["number"], "targets": list(listed), "left": len(names) - len(listed)}
    return Result(document=document, show=lambda writer: _show(writer, listed))


def _show(writer: TextWriter, names: tuple[str, ...]) -> None:
    for name in names:
        writer.line(name)


async def run_gitops_some(session: Session, values: dict[str, Any]) -> Result:
    """Plan some targets, and leave their plans for a run that shows all."""
    share = _read_share(values)
    async with open_context(session, values) as context:
        plan = await plan_some(context, values["number"], share, force=values["force"])
    if plan is None:
        text = f"Pull request {values['number']} is not planned now: `stackyard gitops plan` shows why."
        return Result(document={"targets": []}, show=lambda writer: writer.line(text))
    return plan_result(plan)


def _read_share(values: dict[str, Any]) -> Share:
    """Return which targets are meant.

    Raises:
        UsageError: --part is none, or is given with --target.
    """
    if values["part"] is None:
        return Share(targets=frozenset(values["targets"]))
    found = _PART.fullmatch(values["part"])
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(f"--part {values['part']} is not K/N, such as 2/4.")
    if values["targets"]:
        raise UsageError("Give --target or --part, not both.")
    return Share(part=int(found[1]), parts=int(found[2]))
