"""`stackyard secrets edit`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.secrets.options import file_argument, make_keyring, vault_id_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.errors import InvalidInputError

__all__ = ["edit", "wants_again"]


@click.command("edit", cls=Command)
@file_argument
@vault_id_option
@pass_session
def edit(session: Session, /, file: Path, vault_ids: tuple[str, ...]) -> Result:
    """Edit a secrets file with your editor (SOPS_EDITOR, VISUAL or EDITOR).

    The plain text is in a private folder in memory while you edit. It is wiped when you finish, also if this
    command is killed. The command parses what you save before it encrypts it. If that is not valid, you can
    continue editing, or keep the file as it was. Unchanged values keep their encrypted form, and a diff shows
    only what changed.

    \b
    EDITOR="code --wait" stackyard secrets edit secrets.yaml
    """  # noqa: D301 - click reads the control character
    from stackyard.secrets.edit import Editing, edit_secret_file  # lazy: cryptography, only for this verb

    how = Editing(wants_again=wants_again, emit=session.emit)
    is_changed = edit_secret_file(file, make_keyring(vault_ids), how)
    said = "was changed" if is_changed else "was not changed"
    return Result(
        document={"file": str(file), "is_changed": is_changed},
        show=lambda writer: writer.line(f"{file} {said}."),
    )


def wants_again(problem: InvalidInputError) -> bool:
    """Ask whether to correct a text; no one can be asked where there is no terminal."""
    if not sys.stdin.isatty():
        return False
    place = "" if problem.where is None or problem.where.line is None else f" (line {problem.where.line})"
    return click.confirm(f"{problem.detail}{place}\nOpen the editor again?", default=True, err=True)
