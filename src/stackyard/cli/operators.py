"""Running a verb of the operator for a command line, and what a human and a program see of it."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.cli.confirmation import NotConfirmedError, can_ask, confirm
from stackyard.cli.manifest_target import refuse_plan_options
from stackyard.cli.operator_options import request_of
from stackyard.cli.result import Result
from stackyard.cli.unstored import warn_of_unstored_states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.approval import Approval
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.outcome import NodeOutcome, RunOutcome
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run

__all__ = ["operate"]

_STYLES = {"completed": "green", "destroyed": "green", "failed": "red", "skipped": "yellow"}


def operate(session: Session, verb: str, values: Mapping[str, Any]) -> Result:
    """Run a verb.

    With `--json-output` an error has the same form as an outcome.

    Raises:
        StackyardError: Nothing could be begun.
    """
    try:
        if values["dry_run"]:
            return _preview(session, verb, values)
        confirmed = _confirm(session, values) if verb == "destroy" and not values["yes"] else None
        return session.run(_operate(session, verb, values, confirmed))
    except StackyardError as err:
        if not values["json_output"]:
            raise
        return _error_result(verb, err)


async def _operate(
    session: Session, verb: str, values: Mapping[str, Any], confirmed: frozenset[str] | None
) -> Result:
    from stackyard.operator.outcome import Verb  # lazy: only when a verb runs
    from stackyard.operator.results import result_document  # lazy: as above
    from stackyard.operator.verbs import run_verb  # lazy: as above
    from stackyard.scenario.node_install import install_pve  # lazy: as above
    from stackyard.sources.site.store_choice import find_store  # lazy: as above

    site = values["site"]
    warn_of_unstored_states(find_store(None if site is None else Path(site)).base, session)
    outcome = await run_verb(
        Verb(verb),
        dataclasses.replace(request_of(values), confirmed=confirmed),
        session.emit,
        install_pve=install_pve,
        approval=_approval(session, values) if verb == "create" else None,
    )
    return Result(
        document=result_document(outcome),
        show=lambda writer: _show(writer, outcome),
        status=ExitStatus.DONE if outcome.success else ExitStatus.FAILED,
    )


def _approval(session: Session, values: Mapping[str, Any]) -> Approval:
    """Return what the command line permits, and a question at a terminal."""
    from stackyard.cli.runs.plan_options import make_plan_request  # lazy: as above
    from stackyard.cli.runs.plan_question import require_yes  # lazy: only when a verb runs
    from stackyard.operator.approval import Approval  # lazy: as above

    async def ask(run: Run, made: Plan) -> None:
        await require_yes(session, run, made, f"Apply this plan to {run.resolved.target}?")

    return Approval(plan_request=make_plan_request(values), confirm=None if values["yes"] else ask)


def _error_result(verb: str, err: StackyardError) -> Result:
    from stackyard.base.diagnostics import describe, in_full  # lazy: only for errors

    document = {
        "scenario": verb,
        "success": False,
        "duration_seconds": 0.0,
        "phases": [],
        "context": {},
        "nodes": [],
        "error": f"{err.summary}: {in_full(err)}",
        "diagnosis": describe(err),
    }

    def show(writer: TextWriter) -> None:
        writer.line(f"{err.summary}: {err.detail}", style="red")

    return Result(document=document, show=show, status=err.exit_status)


def _manifest_run(session: Session, verb: str, values: Mapping[str, Any]) -> ManifestRun:
    from stackyard.operator.manifest_run import ManifestRun  # lazy: as above
    from stackyard.operator.outcome import Verb  # lazy: only when a verb runs
    from stackyard.sources.site import ConfigResolver  # lazy: as above

    request = request_of(values)
    return ManifestRun.of(Verb(verb), request, ConfigResolver(request.site, emit=session.emit))


def _preview(session: Session, verb: str, values: Mapping[str, Any]) -> Result:
    refuse_plan_options(values)
    manifest_run = _manifest_run(session, verb, values)
    order = manifest_run.manifest.destroy_order if verb == "destroy" else manifest_run.manifest.create_order
    nodes: list[dict[str, Any]] = [
        {
            "name": node.name,
            "type": node.type.value,
            "depth": manifest_run.manifest.depth(node.name),
            "host": manifest_run.host_of(node.name),
            "where": "local" if node.parent is None else "delegated",
            "preset": node.entry.get("preset"),
            "image": node.entry.get("image"),
            "spec": node.entry.get("spec"),
            "vm_id": node.entry.get("vmid"),
            "mode": node.mode,
            "depends_on": list(node.depends_on),
        }
        for node in order
        if node.name in manifest_run.chosen
    ]

    def show(writer: TextWriter) -> None:
        writer.line(f"`{verb}` of {manifest_run.manifest.name} on {manifest_run.host}; nothing is touched:")
        for node in nodes:
            facts = [f"{key} {node[key]}" for key in ("preset", "image", "spec") if node[key]]
            said = f"{'  ' * node['depth']}[{node['depth']}] {node['name']}: {node['type']}"
            writer.line(f"  {said} on {node['host']} ({', '.join([str(node['where']), *facts])})")
        for name in unlisted:
            writer.line(f"  {name}: in the state, and no longer in the manifest", style="yellow")

    document: dict[str, Any] = {
        "scenario": verb,
        "success": True,
        "dry_run": True,
        "manifest": manifest_run.manifest.name,
        "host": manifest_run.host,
        "nodes": nodes,
    }
    unlisted: list[str] = []
    if verb == "destroy":
        listed = {node["name"] for node in nodes}
        unlisted = [name for name in _list_destroyed(session, values) if name not in listed]
        document |= {"unlisted": unlisted} if unlisted else {}
    return Result(document=document, show=show)


def _confirm(session: Session, values: Mapping[str, Any]) -> frozenset[str]:
    """Ask whether everything may go, and return what was asked about.

    Raises:
        NotConfirmedError: It may not, or no one is there to ask.
    """
    name = values["manifest"] or values["manifest_file"] or "the manifest"
    where = f" on {values['host']}" if values["host"] else ""
    nodes = _list_destroyed(session, values)
    what = f"{', '.join(nodes)} of {name}" if nodes else f"every guest of {name}"
    if not can_ask(session):
        raise NotConfirmedError(f"`destroy` would remove {what}{where}, and there is no terminal to ask on.")
    question = f"This destroys {what}{where}, with all disks. Continue?"
    if not session.run(confirm(session, question, lambda writer: None)):
        raise NotConfirmedError(f"Nothing was destroyed: {what}{where}.")
    return frozenset(nodes)


def _list_destroyed(session: Session, values: Mapping[str, Any]) -> list[str]:
    """Return the nodes that a command line means, and the guests that the manifest had before."""
    nodes: list[str] = []
    name, host = values["manifest"], values["host"]
    # A manifest that cannot be read any more is destroyed by its state.
    with contextlib.suppress(StackyardError):
        manifest_run = _manifest_run(session, "destroy", values)
        order = manifest_run.manifest.destroy_order
        nodes = [node.name for node in order if node.name in manifest_run.chosen]
        name, host = manifest_run.manifest.name, None
    if values["targets"] or name is None:
        return nodes or list(values["targets"])
    return list(dict.fromkeys((*nodes, *_list_in_states(values, name, host))))


def _list_in_states(values: Mapping[str, Any], name: str, host: str | None) -> list[str]:
    from stackyard.cli.state_guests import list_state_guests  # lazy: only before something is destroyed
    from stackyard.sources.site.store_choice import find_store  # lazy: as above
    from stackyard.state import StateService  # lazy: as above

    site = values["site"]
    with contextlib.closing(find_store(None if site is None else Path(site)).read()) as objects:
        return list_state_guests(StateService(objects), "manifest", name, host)


def _show(writer: TextWriter, outcome: RunOutcome) -> None:
    if outcome.nodes:
        rows = [_row(node) for node in outcome.nodes]
        writer.table(("node", "type", "on", "vm id", "address", "status", "took"), rows)
    for node in outcome.nodes:
        if node.error is not None:
            cause = f" (because of {node.cause})" if node.cause and node.cause not in node.error else ""
            writer.line(f"{node.name}: {node.error}{cause}", style=_STYLES.get(node.status.value))
    if outcome.orphans:
        writer.line(f"In no state, and with the tag of {outcome.manifest}: {', '.join(outcome.orphans)}.")
    word = "done" if outcome.success else "failed"
    if outcome.error is not None and not any(
        outcome.error.endswith(node.error or "\0") for node in outcome.nodes
    ):
        writer.line(outcome.error, style="red")
    writer.line(
        f"{outcome.verb} of {outcome.manifest} on {outcome.host}: {word} ({outcome.duration_s:.1f} s).",
        style="green" if outcome.success else "red",
    )
    for path in outcome.logs:
        writer.line(f"  {path}")


def _row(node: NodeOutcome) -> tuple[str, ...]:
    return (
        "  " * node.depth + node.name,
        node.type,
        node.host,
        "-" if node.vm_id is None else str(node.vm_id),
        node.address or "-",
        node.status.value,
        f"{node.took_s:.1f} s",
    )
