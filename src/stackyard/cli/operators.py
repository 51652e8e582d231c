"""Running a verb of the operator for a command line, and what a human and a program see of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.cli.operator_options import request_of
from stackyard.cli.result import Result
from stackyard.cli.unstored import warn_of_unstored_states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.outcome import NodeOutcome, RunOutcome

__all__ = ["NotConfirmedError", "operate"]

_STYLES = {"completed": "green", "destroyed": "green", "failed": "red", "skipped": "yellow"}


class NotConfirmedError(StackyardError):
    """Guests were to be destroyed, and no one said yes to that."""

    code = "E-NOT-CONFIRMED"
    summary = "The action was not confirmed"
    default_remedy = "Say `y` when you are asked, or give --yes."


def operate(session: Session, verb: str, values: Mapping[str, Any]) -> Result:
    """Run a verb.

    With `--json-output` an error has the same form as an outcome.

    Raises:
        StackyardError: Nothing could be begun.
    """
    try:
        if values["dry_run"]:
            return _preview(session, verb, values)
        if verb == "destroy" and not values["yes"]:
            _confirm(verb, values)
        return session.run(_operate(session, verb, values))
    except StackyardError as err:
        if not values["json_output"]:
            raise
        return _error_result(verb, err)


async def _operate(session: Session, verb: str, values: Mapping[str, Any]) -> Result:
    from stackyard.operator.outcome import Verb  # lazy: only when a verb runs
    from stackyard.operator.results import result_document  # lazy: as above
    from stackyard.operator.verbs import run_verb  # lazy: as above
    from stackyard.scenario.node_install import install_pve  # lazy: as above
    from stackyard.sources.site.store_choice import find_store  # lazy: as above

    site = values["site"]
    warn_of_unstored_states(find_store(None if site is None else Path(site)).base, session)
    outcome = await run_verb(Verb(verb), request_of(values), session.emit, install_pve=install_pve)
    return Result(
        document=result_document(outcome),
        show=lambda writer: _show(writer, outcome),
        status=ExitStatus.DONE if outcome.success else ExitStatus.FAILED,
    )


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

    document = {
        "scenario": verb,
        "success": True,
        "dry_run": True,
        "manifest": manifest_run.manifest.name,
        "host": manifest_run.host,
        "nodes": nodes,
    }
    return Result(document=document, show=show)


def _confirm(verb: str, values: Mapping[str, Any]) -> None:
    """Ask whether everything may go.

    Raises:
        NotConfirmedError: It may not, or no one is there to ask.
    """
    name = values["manifest"] or values["manifest_file"] or "the manifest"
    where = f" on {values['host']}" if values["host"] else ""
    nodes = f"{', '.join(values['targets'])} of {name}" if values["targets"] else f"every guest of {name}"
    if not sys.stdin.isatty():
        raise NotConfirmedError(f"`{verb}` would remove {nodes}{where}, and there is no terminal to ask on.")
    if not click.confirm(f"This removes {nodes}{where}. Go on?", default=False, err=True):
        raise NotConfirmedError(f"{nodes[0].upper()}{nodes[1:]}{where} stays as it is.")


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
