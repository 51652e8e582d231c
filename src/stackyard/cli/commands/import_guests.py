"""`stackyard import`: guests that are already there."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import settings_of, target_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.cli.views.changes import finding_document
from stackyard.desired import Container
from stackyard.errors import UsageError
from stackyard.path.environment import EnvironmentSource
from stackyard.path.importing.choosing import parse_filter
from stackyard.path.importing.importing import Wanted
from stackyard.path.importing.importing import import_guests as run_import
from stackyard.path.target import find_target

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.path.importing.configuration import Translated
    from stackyard.path.importing.importing import Imported

__all__ = ["import_guests"]


@click.command("import", cls=Command)
@target_options
@click.option("--node", "nodes", metavar="NODE,...", multiple=True, help="Only guests on these nodes.")
@click.option(
    "--filter",
    "filters",
    metavar="EXPR",
    multiple=True,
    help="Only guests that this means: a name with * and ?, a vm id or range, tag=, pool=, type=vm|ct, "
    "node=. Commas separate alternatives; several filters all have to hold.",
)
@click.option(
    "--leave",
    metavar="KEY,...",
    multiple=True,
    help="Keys of configurations that the site cannot express and that stay as they are.",
)
@click.option(
    "--dry-run", is_flag=True, help="Prove that it would work, show what would be written, write nothing."
)
@pass_session
def import_guests(session: Session, /, **values: Any) -> Result:
    """Take guests over that are already there: write them into TARGET (`env:home`) and its state.

    Without a filter these are all guests of the cluster that nothing manages. Nothing is changed on the
    cluster. The plan that follows is empty: that is proved in a state of its own before anything is written,
    and again at the end. Where a guest has something that cannot be expressed, nothing is written at all,
    and everything of that kind is said at once.

    An env that is not there yet is made: `stackyard import env:home -H pve1`.
    """
    return session.run(_import(session, values))


async def _import(session: Session, values: dict[str, Any]) -> Result:
    source = EnvironmentSource.find(values["site"], emit=session.emit)
    nodes = [f"node={_node(node, source)}" for given in values["nodes"] for node in _words(given)]
    texts = [*([",".join(nodes)] if nodes else []), *values["filters"]]
    wanted = Wanted(
        env=_env(values["target"], source),
        host=values["host"],
        filters=tuple(parse_filter(text) for text in texts),
        left_alone=frozenset(key for given in values["leave"] for key in _words(given)),
        is_trial=values["dry_run"],
    )
    settings = settings_of(values, source.base)
    done = await run_import(source.resolver, wanted, settings, emit=session.emit)
    return Result(document=_document(done, wanted), show=lambda paper: _show(paper, done, wanted))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _node(name: str, source: EnvironmentSource) -> str:
    """Return what Proxmox calls a node that the user may call by its file."""
    known = source.resolver.site.nodes.get(name)
    return name if known is None else known.model.node or name


def _env(target: str, source: EnvironmentSource) -> str:
    """Return the env that is meant, which need not be there yet when its kind is said.

    Raises:
        UsageError: It is none.
    """
    kind, colon, name = target.partition(":")
    if colon and kind == source.kind and name:
        return name
    if colon:
        raise UsageError("Guests are imported into an env: say `env:NAME`.")
    return find_target(target, {source.kind: source})[1]


def _document(done: Imported, wanted: Wanted) -> dict[str, Any]:
    written = done.written
    return {
        "target": done.target,
        "state": done.state,
        "dry_run": wanted.is_trial,
        "file": None if written is None else str(written.text.path),
        "imported": [
            {
                "name": one.name,
                "vm_id": one.vm_id,
                "type": _type(one),
                "node": one.node,
                "notes": list(one.notes),
                "entry": None if written is None else written.entries.get(one.vm_id),
            }
            for one in done.guests
        ],
        "foreseen": [finding_document(finding) for finding in done.foreseen],
        "managed": [{"vm_id": vm_id, "state": state} for vm_id, state in sorted(done.managed.items())],
    }


def _type(one: Translated) -> str:
    return "ct" if isinstance(one.guest, Container) else "vm"


def _show(paper: Paper, done: Imported, wanted: Wanted) -> None:
    written = done.written
    if written is None:
        paper.line("There is nothing to import: every guest that is meant is managed already.")
    else:
        if wanted.is_trial:
            for line in _changed_lines(written.text.before or "", written.text.after):
                paper.line(line)
        rows = [(one.name, str(one.vm_id), _type(one), one.node) for one in done.guests]
        paper.table(("guest", "vm id", "type", "node"), rows)
        for one in done.guests:
            for note in one.notes:
                paper.line(f"{one.name} {note}.", style="yellow")
        for finding in done.foreseen:
            place = "" if finding.where is None else f"{finding.where}: "
            paper.line(f"An apply would meet this: {place}{finding.detail}", style="yellow")
        verb = "Would import" if wanted.is_trial else "Imported"
        guests = "1 guest" if len(done.guests) == 1 else f"{len(done.guests)} guests"
        paper.line(f"{verb} {guests} into {done.target}; the plan for them is empty.", style="green")
    others = sum(state != done.state for state in done.managed.values())
    if others:
        paper.line(f"Left out, because other states have them: {others}.")


def _changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
