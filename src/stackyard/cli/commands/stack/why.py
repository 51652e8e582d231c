"""`stackyard stack why`: every way from a change to a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.stack.selecting import run_selection
from stackyard.cli.completions import complete_stacks
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["why"]


@click.command("why", cls=Command)
@click.argument("name", shell_complete=complete_stacks)
@click.option(
    "--base", metavar="REF", help="The commit or branch to compare with (default: the default branch)."
)
@pass_session
def why(session: Session, name: str, base: str | None) -> Result:
    """Show why a change selects a stack, or why not.

    Each line is a way from a file that changed to the stack: through the module that the file belongs to and
    the modules that call it, or through the expression that reads it. "Cannot prove unchanged" names an
    expression that chooses a file and that only OpenTofu can compute.

    \b
    stackyard stack why onprem/server_a
    stackyard stack why onprem/server_a --base v1.4
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.stacks.repository import find_stacks  # lazy: only when this verb runs

    repository = find_stacks()
    selection = run_selection(session, repository, base)
    chosen = next((one for one in selection.stacks if one.name == name.rstrip("/")), None)
    if chosen is None:
        found = repository.find(name)
        chosen = next((one for one in selection.stacks if one.name == found.name), None)
        name = found.name
    reasons = () if chosen is None else chosen.reasons
    base_name = selection.base_name

    def show(writer: TextWriter) -> None:
        if chosen is None:
            writer.line(f"{name}: not selected, because nothing that it reads differs from {base_name}.")
            return
        writer.line(f"{chosen.name}: selected, compared with {base_name}:")
        for reason in reasons:
            writer.line(f"  {reason}")

    return Result(
        document={
            "name": name.rstrip("/"),
            "is_selected": chosen is not None,
            "is_removed": chosen is not None and chosen.stack is None,
            "base": {"name": base_name, "commit": selection.base or None},
            "reasons": [
                {"kind": one.kind.value, "chain": list(one.chain), "detail": one.detail} for one in reasons
            ],
        },
        show=show,
    )
