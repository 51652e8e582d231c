"""`stackyard deployment edit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, read_acknowledgements, write_options
from stackyard.cli.commands.deployment.view import make_write_result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result
    from stackyard.sources.deployment.fetch import Object

__all__ = ["edit"]


@click.command("edit", cls=Command)
@click.option("--set", "assigned", metavar="PATH=VALUE", multiple=True, help="Set a value, as JSON or text.")
@click.option("--unset", "removed", metavar="PATH", multiple=True, help="Remove a value.")
@click.option(
    "--patch", metavar="FILE", help="Apply a merge patch (an object) or a JSON Patch (a list of operations)."
)
@write_options
@pass_session
def edit(session: Session, /, store: str | None, **values: Any) -> Result:
    """Change the object with your editor, with --set, or with --patch.

    The command holds the lease from before the fetch until after the write, and no other session can write in
    between. It validates what you save. If the object is not valid, it asks whether to continue editing. A
    dot inside a key is written `\\.` in a path.

    \b
    stackyard deployment edit
    stackyard deployment edit --set containers.web.cpu_cores=4 --note "web is slow"
    stackyard deployment edit --unset containers.old --allow-delete old
    stackyard deployment edit --patch bigger.json --dry-run
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.deployment.write import WriteRequest, write  # lazy: only when this verb runs

    place = place_of(store)
    without_editor = bool(values["assigned"] or values["removed"] or values["patch"])
    make = _make_change(values) if without_editor else _make_editor_change(session, place)
    request = WriteRequest(kind="edit", make=make, can_repeat=without_editor, **read_acknowledgements(values))
    return make_write_result(write(place, request, emit=session.emit), place.label)


def _make_change(values: dict[str, Any]) -> Any:
    """Return what makes the new object by itself."""
    from stackyard.base import files  # lazy: only when this verb runs
    from stackyard.sources.deployment.edit import apply_patch, format_object, set_values  # lazy: as above
    from stackyard.sources.deployment.text import parse_any  # lazy: as above

    patch = None
    if values["patch"]:
        patch = parse_any(files.read_text(Path(values["patch"])), values["patch"])

    def make(current: Object | None) -> bytes:
        data = _require_object(current).document.data
        if patch is not None:
            data = apply_patch(data, patch)
        return format_object(set_values(data, values["assigned"], values["removed"]))

    return make


def _make_editor_change(session: Session, place: Any) -> Any:
    """Return what makes the new object with the user's editor."""
    from stackyard.sources.deployment.editor import edit_text  # lazy: only when this verb runs

    def make(current: Object | None) -> bytes:
        return edit_text(_require_object(current).document.text, place, wants_again=_wants_again)

    del session
    return make


def _require_object(current: Object | None) -> Object:
    if current is None:
        raise UsageError(
            "There is no object yet: write a first version with `stackyard deployment put FILE`."
        )
    return current


def _wants_again(problem: InvalidInputError) -> bool:
    """Ask whether to correct a text; no one can be asked where there is no terminal."""
    if not sys.stdin.isatty():
        return False
    found = "".join(f"\n  {one.where or ''} {one.detail}" for one in problem.diagnostics[:20])
    return click.confirm(f"{problem.detail}{found}\nOpen the editor again?", default=True, err=True)
