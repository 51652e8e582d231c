"""`stackyard policy check`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.stack.selecting import pause_collection
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.policy.check import PolicyResult
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["check"]

_STYLES = {"error": "red", "warning": "yellow", "note": "blue"}


@click.command("check", cls=Command)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--rule", "rules", metavar="RULES", multiple=True, help="Only these rules: M4,M5; repeatable.")
@click.option("--base", metavar="REF", help="The commit or branch to compare major versions with (M12).")
@pass_session
def check(session: Session, /, paths: tuple[str, ...], rules: tuple[str, ...], base: str | None) -> Result:
    """Check the modules and stacks of the repository against the rules M1 to M12.

    Each finding has the rule, the file and line, what is wrong, and what to do. With PATH, which is a file, a
    folder or the name of a stack, only findings at or below it are shown. M12 is checked only with --base.

    Exit status 1: there are findings. Exit status 65: the input is not valid, such as stackyard.yaml.

    \b
    stackyard policy check
    stackyard policy check --rule M4,M7 tofu/modules/vm
    stackyard policy check --base origin/main
    """  # noqa: D301 - click reads the control character
    from stackyard.policy.check import PolicyRequest, check_policy  # lazy: only when this verb runs
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    with pause_collection():
        repository = find_stacks(may_be_empty=True)
        request = PolicyRequest(rules=rules, paths=_clean(repository, paths), base=base)
        result = session.run(check_policy(repository, request))
    status = ExitStatus.FAILED if result.errors else ExitStatus.DONE
    return Result(
        document={"root": str(repository.root), **result.document()},
        show=lambda writer: _show(writer, repository, result),
        status=status,
    )


def _clean(repository: StackRepository, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths from the top of the repository; the name of a stack means its folder."""
    found = []
    for one in paths:
        stack = repository.stacks.get(one)
        place = str(stack.folder) if stack is not None else os.path.realpath(one)
        path = os.path.relpath(place, repository.root)
        if path.startswith("..") or not os.path.lexists(place):
            raise UsageError(f"`{one}` is neither a stack nor a path in {repository.root}.")
        found.append(path)
    return tuple(found)


def _show(writer: TextWriter, repository: StackRepository, result: PolicyResult) -> None:
    titles = {one.id: one.title for one in result.rules}
    last = ""
    for one in result.findings:
        if one.rule != last:
            if last:
                writer.line()
            writer.line(f"{one.rule}  {titles.get(one.rule, 'a rule of your own')}")
            last = one.rule
        where = shown_place(repository, one.where.path, one.where.line)
        writer.line(f"  {where}: {one.level.value}: {one.detail}", style=_STYLES[one.level.value])
        writer.line(f"    {one.remedy}")
    for item in result.excepted:
        where = shown_place(repository, item.finding.where.path, item.finding.where.line)
        writer.line(
            f"excepted: {item.finding.rule} {where}: {item.exception.reason} (until {item.exception.until})"
        )
    for skipped in result.skipped:
        writer.line(f"{skipped.rule} was not checked: {skipped.reason}.", style="yellow")
    writer.line(_summary(result), style="red" if result.errors else "green")


def _summary(result: PolicyResult) -> str:
    looked = f"{_count(result.modules, 'module')} and {_count(result.stacks, 'stack')}"
    more = len(result.findings) - len(result.errors)
    extra = [_count(more, "remark")] if more else []
    extra += [f"{len(result.excepted)} excepted"] if result.excepted else []
    behind = f" ({', '.join(extra)})" if extra else ""
    if not result.errors:
        return f"{looked}: no findings{behind}."
    return f"{looked}: {_count(len(result.errors), 'finding')}{behind}; exit status 1."


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def shown_place(repository: StackRepository, path: str, line: int | None) -> str:
    """Return a place of the tree as the user would type it here."""
    full = Path(repository.tree.top) / path
    from_here = os.path.relpath(full)
    shown = str(full) if from_here.startswith("..") else from_here
    return shown if line is None else f"{shown}:{line}"
