"""`stackyard explain-error`: what a code means, why it happens, and what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

    from stackyard.cli.error_codes import ErrorCode
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["explain_error"]

_PREFIXES = ("", "E-", "W-")
_WIDTH = 100


def _complete_code(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # lazy: only a shell asks

    from stackyard.cli.error_codes import read_catalogue  # lazy: as above

    del ctx, param
    # A shell keeps what begins as the word that was typed, letter by letter.
    return [
        CompletionItem(incomplete + code[len(start) :], help=row.summary)
        for code, row in read_catalogue().items()
        for start in (f"{prefix}{incomplete}".upper() for prefix in _PREFIXES)
        if code.startswith(start) and (incomplete or start == "")
    ]


@click.command("explain-error", cls=Command)
@click.argument("code", required=False, shell_complete=_complete_code)
def explain_error(code: str | None) -> Result:
    """Explain an error code: what it means, why it happens, and what to do.

    Lower case works, and so does a code without its `E-`. Without a code, the command lists all codes.

    \b
    stackyard explain-error E-STATE-LOCKED
    stackyard explain-error guard-destroys-guest
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.error_codes import read_catalogue  # lazy: the help needs none of it

    known = read_catalogue()
    if code is None:
        rows = [(one.code, one.summary) for one in known.values()]
        return Result(
            document={"codes": [{"code": name, "summary": summary} for name, summary in rows]},
            show=lambda writer: writer.table(("code", "what it means"), rows),
        )
    found = _find(code, known)
    return Result(document=_document(found), show=lambda writer: _show(writer, found))


def _find(code: str, known: Mapping[str, ErrorCode]) -> ErrorCode:
    wanted = code.strip().strip("[]`.:").upper().replace("_", "-")
    for prefix in _PREFIXES:
        if prefix + wanted in known:
            return known[prefix + wanted]
    near = did_you_mean(wanted if wanted[:2] in _PREFIXES else f"E-{wanted}", known)
    raise UsageError(
        f"There is no error code `{code}`.{near}", remedy="`stackyard explain-error` lists all codes."
    )


def _document(found: ErrorCode) -> dict[str, Any]:
    more = found.explanation
    return {
        "code": found.code,
        "severity": "warning" if found.code.startswith("W-") else "error",
        "exit_status": found.exit_status,
        "summary": found.summary,
        "meaning": found.meaning or None,
        "explanation": None if more is None else more.text,
        "remedy": found.remedy or None,
        "page": None if more is None else f"docs/{more.page}",
    }


def _show(writer: TextWriter, found: ErrorCode) -> None:
    writer.line(f"{found.code}: {found.summary}", style="yellow" if found.code.startswith("W-") else "red")
    if found.meaning:
        writer.line(found.meaning)
    if found.explanation is not None:
        writer.line()
        for line in textwrap.wrap(found.explanation.text, _WIDTH, break_on_hyphens=False):
            writer.line(line)
    if found.remedy:
        writer.line()
        writer.line("What to do:")
        for line in found.remedy.splitlines():
            writer.line(f"  {line}", style="cyan")
    if found.explanation is not None:
        writer.line()
        writer.line(f"See docs/{found.explanation.page}.")
