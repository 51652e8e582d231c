"""`stackyard policy fix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.policy.places import clean_paths, shown_place
from stackyard.cli.commands.stack.selecting import pause_collection
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.policy.fix.changes import FileChange
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["fix"]


@click.command("fix", cls=Command)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show the differences and write nothing.")
@pass_session
def fix(session: Session, /, paths: tuple[str, ...], dry_run: bool) -> Result:
    """Correct findings of `policy check`: README tables, versions with `~>`, missing files.

    The README of each module gets tables of its inputs and outputs; your own text, and rows that are right,
    stay. An exact version, or one with `>=`, gets `~>`; a provider without a version gets one from the
    lock file. A module without variables gets a variables.tf that says so. Descriptions, types and outputs
    are yours to write: `stackyard policy check` lists what is left. Files in JSON syntax are not changed.

    With PATH, which is a file, a folder or the name of a stack, only files at or below it are written.

    \b
    stackyard policy fix --dry-run
    stackyard policy fix tofu/modules/vm
    """  # noqa: D301 - click reads the control character
    from stackyard.policy.context import read_context  # lazy: only when this verb runs
    from stackyard.policy.fix.changes import find_changes, write_changes  # lazy: as above
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    del session
    with pause_collection():
        repository = find_stacks(may_be_empty=True)
        context = read_context(repository)
        changes = find_changes(context, clean_paths(repository, paths))
        repository.cache.save()
    if not dry_run:
        write_changes(context, changes)
    document = {
        "root": str(repository.root),
        "written": not dry_run,
        "files": [
            {"file": one.path, "change": one.reason, "is_new": one.old is None, "diff": one.diff()}
            for one in changes
        ],
    }
    return Result(document=document, show=lambda writer: _show(writer, repository, changes, dry_run=dry_run))


def _show(
    writer: TextWriter, repository: StackRepository, changes: Sequence[FileChange], *, dry_run: bool
) -> None:
    for one in changes:
        if dry_run:
            writer.lines(one.diff().rstrip("\n"))
        else:
            word = "created" if one.old is None else "changed"
            writer.line(f"{word} {shown_place(repository, one.path, None)}: {one.reason}")
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    if not changes:
        writer.line("There is nothing to write.")
    else:
        writer.line(f"{files} would be written." if dry_run else f"{files} written.")
