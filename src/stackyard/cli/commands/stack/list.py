"""`stackyard stack list`: all stacks, or those that a change touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.stack.selecting import pause_collection, run_selection
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.selection import SelectedStack, Selection

__all__ = ["list_stacks"]

_MOST_SHOWN = 100


@click.command("list", cls=Command)
@click.option("--changed", "is_changed", is_flag=True, help="Only stacks that differ from the base.")
@click.option(
    "--base",
    metavar="REF",
    help="The commit or branch to compare with (default: the default branch); implies --changed.",
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only stacks with this tag; repeatable.")
@click.option("--layer", metavar="LAYER", help="Only stacks of this layer.")
@click.option("--order", "is_ordered", is_flag=True, help="In the order in which they are applied.")
@pass_session
def list_stacks(
    session: Session,
    is_changed: bool,
    base: str | None,
    tags: tuple[str, ...],
    layer: str | None,
    is_ordered: bool,
) -> Result:
    """List the stacks of the repository, or only those that a change touches.

    A stack is changed when something differs that it reads: its own files, the files of its local modules,
    files that its code reads with `file`, `templatefile`, `fileset` and the like, its files of values, its
    lock file, and what `watch` in its stack.yaml names. Documentation does not count, unless a stack reads
    it. The base is the commit that your branch and the default branch have in common; uncommitted files
    count. On the default branch, a stack is compared with the commit that was applied last.

    The command exits with status 65 if stacks are not valid, or share a state.

    \b
    stackyard stack list
    stackyard stack list --changed --order
    stackyard stack list --changed --base origin/main
    stackyard stack list --tag proxmox --layer 02-platforms
    """  # noqa: D301 - click reads the control character
    choice = _Choice(is_changed or base is not None, base, tags, layer, is_ordered)
    with pause_collection():
        return _list(session, choice)


class _Choice(NamedTuple):
    """Which stacks to list, and how."""

    is_changed: bool
    base: str | None
    tags: tuple[str, ...]
    layer: str | None
    is_ordered: bool


def _list(session: Session, choice: _Choice) -> Result:
    from stackyard.sources.stacks.isolation import check_isolation  # lazy: only when this verb runs
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    repository = find_stacks()
    if choice.layer is not None and choice.layer not in repository.layers:
        known = ", ".join(repository.layers) or "none"
        raise UsageError(f"There is no layer `{choice.layer}`; the layers are: {known}.")
    selection = run_selection(session, repository, choice.base) if choice.is_changed else None
    found = check_isolation(repository).found
    names = _choose(repository, selection, choice.tags, choice.layer)
    if choice.is_ordered:
        names = _sort(repository, names)
    repository.cache.save()
    rows = _documents(repository, selection, names)
    status = ExitStatus.INVALID if repository.broken or found.errors else ExitStatus.DONE
    return Result(
        document=_document(repository, selection, rows, found),
        show=lambda writer: _show(writer, repository, selection, rows, found),
        status=status,
    )


def _choose(
    repository: StackRepository, selection: Selection | None, tags: Sequence[str], layer: str | None
) -> list[str]:
    chosen = list(repository.stacks) if selection is None else [one.name for one in selection.stacks]
    wanted = []
    for name in chosen:
        stack = repository.stacks.get(name)
        if stack is None:
            # One that is gone has neither tags nor a layer any more.
            wanted += [] if tags or layer else [name]
        elif set(tags).issubset(stack.settings.tags) and layer in (None, stack.layer):
            wanted.append(name)
    return wanted


def _sort(repository: StackRepository, names: list[str]) -> list[str]:
    chosen = set(names)
    order = [name for level in repository.graph().levels for name in level]
    # What is gone is destroyed first: it may hold what another one now wants.
    return [name for name in names if name not in repository.stacks] + [n for n in order if n in chosen]


def _documents(
    repository: StackRepository, selection: Selection | None, names: list[str]
) -> list[dict[str, Any]]:
    selected: Mapping[str, SelectedStack] = (
        {} if selection is None else {one.name: one for one in selection.stacks}
    )
    rows = []
    for name in names:
        stack, chosen = repository.stacks.get(name), selected.get(name)
        row: dict[str, Any] = {
            "name": name,
            "path": stack.path if stack is not None else chosen.path if chosen is not None else "",
            "layer": "" if stack is None else stack.layer,
            "tags": [] if stack is None else list(stack.settings.tags),
        }
        if chosen is not None:
            row["state"] = chosen.reasons[0].kind.value
            row["reasons"] = [
                {"kind": one.kind.value, "chain": list(one.chain), "detail": one.detail}
                for one in chosen.reasons
            ]
        rows.append(row)
    return rows


def _document(
    repository: StackRepository, selection: Selection | None, rows: list[dict[str, Any]], found: Diagnostics
) -> dict[str, Any]:
    from stackyard.base.diagnostics import describe  # lazy: only when this verb runs

    return {
        "root": str(repository.root),
        "layers": list(repository.layers),
        "base": None
        if selection is None
        else {"name": selection.base_name, "commit": selection.base or None},
        "stacks": rows,
        "broken": {name: describe(error) for name, error in repository.broken.items()},
        "findings": [one.document() for one in found],
    }


def _show(
    writer: TextWriter,
    repository: StackRepository,
    selection: Selection | None,
    rows: list[dict[str, Any]],
    found: Diagnostics,
) -> None:
    from stackyard.cli.commands.stack.words import show_broken, show_findings  # lazy: only when shown

    if rows:
        has_layers, has_tags = any(row["layer"] for row in rows), any(row["tags"] for row in rows)
        headings = ["stack", *(["layer"] if has_layers else []), *(["tags"] if has_tags else [])]
        headings += ["why"] if selection is not None else []
        cells = []
        for row in rows:
            cell = [row["name"], *([row["layer"]] if has_layers else [])]
            cell += [" ".join(row["tags"])] if has_tags else []
            cells.append(cell + ([_why(row)] if selection is not None else []))
        writer.table(headings, cells)
    elif selection is not None:
        writer.line(f"No stack differs from {selection.base_name or 'the base'}.")
    else:
        writer.line("No stack fits.")
    show_broken(writer, repository)
    show_findings(writer, found)


def _why(row: dict[str, Any]) -> str:
    first = row["reasons"][0]
    kind = "" if first["kind"] == "changed" else f"{first['kind']}: "
    more = f" (+{len(row['reasons']) - 1})" if len(row["reasons"]) > 1 else ""
    text = first["chain"][0] if first["kind"] != "never applied" else ""
    return (f"{kind}{text}".rstrip(": ") + more)[:_MOST_SHOWN]
