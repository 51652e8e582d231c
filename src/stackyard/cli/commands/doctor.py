"""`stackyard doctor`: whether stackyard can be used here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.site import site_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.doctor import DoctorReport

__all__ = ["doctor"]

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor", cls=Command)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1, max=600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each check may take.",
)
@site_option
@pass_session
def doctor(session: Session, timeout_s: float, said: str | None) -> Result:
    """Show what is installed, reachable and outdated, with what to do about each problem.

    It looks at stackyard and its extras, Python, OpenTofu and the other programs. In a site, it also looks at
    its files, at its store, and at the API and token of each of its hosts. All checks run in parallel. They
    change nothing, and contact only the store and the hosts of the site. To check one host in depth, run
    `stackyard preflight`.

    Exit status: 0 stackyard can be used, 1 there is a problem.

    \b
    stackyard doctor
    stackyard doctor --site ~/my-yard --json
    """  # noqa: D301 - click reads the control character
    from stackyard.operator.doctor import examine  # lazy: asyncio, pydantic and aiohttp

    report = session.run(examine(said, timeout_s=timeout_s, emit=session.emit))
    return Result(
        document=report.document(), show=lambda writer: _show(writer, report), status=report.exit_status
    )


def _show(writer: TextWriter, report: DoctorReport) -> None:
    writer.table(
        ("area", "name", "", "seen"),
        [(row.area, row.name, row.status.value, row.seen) for row in report.rows],
    )
    for row in report.rows:
        if row.remedy:
            writer.line(f"{row.name}: {row.remedy}", style=_STYLES[row.status.value])
    writer.line(report.summary, style="green" if report.is_usable else "red")
