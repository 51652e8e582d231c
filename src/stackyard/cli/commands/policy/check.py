"""`stackyard policy check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.policy.places import clean_paths, shown_place
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
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "sarif")),
    default="text",
    help="How to print the findings (default: text); --json prints JSON too.",
)
@click.option("--output", metavar="FILE", help="Write the findings into a file; a summary is printed.")
@pass_session
def check(
    session: Session,
    /,
    paths: tuple[str, ...],
    rules: tuple[str, ...],
    base: str | None,
    form: str,
    output: str | None,
) -> Result:
    """Check the modules and stacks of the repository against the rules M0 to M12.

    Each finding has the rule, the file and line, what is wrong, and what to do. With PATH, which is a file, a
    folder or the name of a stack, only findings at or below it are shown. M12 is checked only with --base.

    Exit status 1: there are findings. Exit status 65: the input is not valid, such as stackyard.yaml.

    \b
    stackyard policy check
    stackyard policy check --rule M4,M7 tofu/modules/vm
    stackyard policy check --base origin/main
    stackyard policy check --format sarif --output policy.sarif
    """  # noqa: D301 - click reads the control character
    from stackyard.policy.check import PolicyRequest, check_policy  # lazy: only when this verb runs
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    with pause_collection():
        repository = find_stacks(may_be_empty=True)
        request = PolicyRequest(rules=rules, paths=clean_paths(repository, paths), base=base)
        result = session.run(check_policy(repository, request))
    document = {"root": str(repository.root), **result.document()}
    status = ExitStatus.FAILED if result.errors else ExitStatus.DONE
    text = "" if form == "text" else _render(document, result, form)
    if output is not None:
        _write(output, text or _as_text(repository, result))
        return Result(document=document, show=lambda writer: _show_end(writer, result), status=status)
    if text:
        return Result(document=document, show=lambda writer: writer.text(text), status=status)
    return Result(document=document, show=lambda writer: _show(writer, repository, result), status=status)


def _render(document: dict[str, Any], result: PolicyResult, form: str) -> str:
    import orjson  # lazy: only for these forms

    from stackyard.policy.sarif import make_sarif  # lazy: as above

    said = make_sarif(result) if form == "sarif" else document
    return orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _as_text(repository: StackRepository, result: PolicyResult) -> str:
    import io  # lazy: only for a file of text

    from stackyard.cli.views.text_writer import TextWriter  # lazy: as above

    stream = io.StringIO()
    _show(TextWriter(stream, colour=False), repository, result)
    return stream.getvalue()


def _write(output: str, text: str) -> None:
    from stackyard.base import files  # lazy: only with --output

    files.replace_file(Path(output), text.encode(), mode=0o644)


def _show(writer: TextWriter, repository: StackRepository, result: PolicyResult) -> None:
    titles = {one.id: one.title for one in result.rules}
    last = ""
    for one in result.findings:
        if one.rule != last:
            if last:
                writer.line()
            writer.line(f"{one.rule}  {titles.get(one.rule, 'Your own rules in Rego')}")
            last = one.rule
        where = shown_place(repository, one.where.path, one.where.line)
        writer.line(f"  {where}: {one.level.value}: {one.detail}", style=_STYLES[one.level.value])
        writer.line(f"    {one.remedy}")
    for item in result.excepted:
        where = shown_place(repository, item.finding.where.path, item.finding.where.line)
        writer.line(
            f"excepted: {item.finding.rule} {where}: {item.exception.reason} (until {item.exception.until})"
        )
    _show_end(writer, result)


def _show_end(writer: TextWriter, result: PolicyResult) -> None:
    for skipped in result.skipped:
        writer.line(f"{skipped.rule} was not checked: {skipped.reason}.", style="yellow")
    writer.line(_summary(result), style="red" if result.errors else "green")


def _summary(result: PolicyResult) -> str:
    looked = f"{_count(result.modules, 'module')} and {_count(result.stacks, 'stack')}"
    more = len(result.findings) - len(result.errors)
    extra = [f"warnings and notes: {more}"] if more else []
    extra += [f"{len(result.excepted)} excepted"] if result.excepted else []
    behind = f" ({', '.join(extra)})" if extra else ""
    if not result.errors:
        return f"{looked}: no findings{behind}."
    return f"{looked}: {_count(len(result.errors), 'finding')}{behind}; exit status 1."


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
