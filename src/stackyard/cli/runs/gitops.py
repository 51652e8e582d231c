"""The runs of `stackyard gitops`: a forge, the commits of a repository and the store, put together."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.commands.store.open_site import store_here
from stackyard.cli.result import Result
from stackyard.clients.forge.open_forge import open_forge
from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.context import CredentialFiles, GitopsContext, OwnEnvironment
from stackyard.gitops.flow import apply_pull, plan_pull, read_pull
from stackyard.gitops.forge_place import find_place, read_token
from stackyard.gitops.model import PullPlan, TargetState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.base import events
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.store import ChosenStore

__all__ = [
    "open_context",
    "open_context_of",
    "plan_result",
    "pull_document",
    "run_gitops_apply",
    "run_gitops_plan",
    "run_gitops_status",
]

_COLOURS = {
    TargetState.APPLIED: "green",
    TargetState.FAILED: "red",
    TargetState.REFUSED: "red",
    TargetState.BLOCKED: "red",
}


@contextlib.asynccontextmanager
async def open_context(session: Session, values: Mapping[str, Any]) -> AsyncIterator[GitopsContext]:
    """Give what work on the pull requests of a repository needs, as the options name it.

    Raises:
        UsageError: It is not clear which repository, or there is no token.
        ForgeError: The forge cannot be used.
    """
    async with open_context_of(store_here(None), values, session.emit) as context:
        yield context


@contextlib.asynccontextmanager
async def open_context_of(
    store: ChosenStore, values: Mapping[str, Any], emit: events.Emit
) -> AsyncIterator[GitopsContext]:
    """Give the same with a store that was found before."""
    place = find_place(values["forge"], values["url"], values["repository"])
    ca = None if values["ca"] is None else Path(values["ca"])
    folder = values["credentials"]
    async with open_forge(place.kind, place.url, place.repository, read_token(), ca=ca) as forge:
        yield GitopsContext(
            forge=forge,
            checkouts=open_checkouts(forge.clone_access.url, authority=ca),
            store=store,
            credentials=OwnEnvironment() if folder is None else CredentialFiles(Path(folder)),
            emit=emit,
            at_once=values["jobs"],
        )


async def run_gitops_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan a pull request."""
    async with open_context(session, values) as context:
        plan = await plan_pull(context, values["number"], force=values["force"])
    return plan_result(plan)


def plan_result(plan: PullPlan) -> Result:
    """Return what a plan of a pull request prints, and its exit status."""
    states = {one.state for one in plan.targets}
    status = ExitStatus.REFUSED if TargetState.REFUSED in states else ExitStatus.DONE
    if states & {TargetState.FAILED, TargetState.BLOCKED}:
        status = ExitStatus.FAILED
    return Result(document=pull_document(plan), show=lambda writer: _show(writer, plan), status=status)


async def run_gitops_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply what was reviewed of a pull request."""
    only = frozenset(values["targets"]) or None
    if (values["number"] is None) is (values["commit"] is None):
        raise UsageError("Give the NUMBER of a pull request, or --commit.")
    async with open_context(session, values) as context:
        number = values["number"] or await _find_merged(context, values["commit"])
        if not number:
            text = f"No pull request was merged with {values['commit']}: there is nothing to apply."
            return Result(document={"applied": False}, show=lambda writer: writer.line(text))
        plan = await apply_pull(context, number, only=only)
    is_failed = any(one.state is TargetState.FAILED for one in plan.targets)
    return Result(
        document=pull_document(plan),
        show=lambda writer: _show(writer, plan),
        status=ExitStatus.FAILED if is_failed else ExitStatus.DONE,
    )


async def _find_merged(context: GitopsContext, commit: str) -> int:
    """Return the pull request that a commit came with; 0 where it was pushed."""
    pull = await context.forge.merged_pull(commit)
    return 0 if pull is None else pull.number


async def run_gitops_status(session: Session, values: dict[str, Any]) -> Result:
    """Show what is known of a pull request."""
    async with open_context(session, values) as context:
        plan = await read_pull(context, values["number"])
    if plan is None:
        raise UsageError(f"Nothing is known of pull request {values['number']}: it was never planned.")
    return Result(document=pull_document(plan), show=lambda writer: _show(writer, plan))


def pull_document(plan: PullPlan) -> dict[str, Any]:
    """Return the JSON view of the plan of a pull request."""
    said = asdict(plan)
    for target in said["targets"]:
        target["state"] = target["state"].value
        for finding in target["findings"]:
            finding["risk"] = finding["risk"].value
    return said


def _show(writer: TextWriter, plan: PullPlan) -> None:
    where = f"merged as {plan.merged[:12]}" if plan.merged else f"on {plan.base[:12]}"
    writer.line(f"{plan.repository}#{plan.number}: {plan.head[:12]} {where} of {plan.base_branch}")
    for note in (*plan.notes, *plan.moved):
        writer.line(note, style="yellow")
    if not plan.targets:
        writer.line("No target changes.")
    for one in plan.targets:
        counts = Counter(change["action"] for change in one.document.get("changes", ()))
        numbers = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
        text = f"{one.target}: {one.state.value}{f' ({numbers})' if numbers else ''}"
        writer.line(text, style=_COLOURS.get(one.state))
        if one.plan:
            writer.line(f"  stackyard plans show {one.plan.removeprefix('store:')}")
