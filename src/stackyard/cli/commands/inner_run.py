"""`stackyard inner-run`: the inner side of a delegation, started over SSH by an outer operator."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.base import directories
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.base import events
    from stackyard.base.redaction import Redactor
    from stackyard.operator.outcome import RunOutcome, Verb
    from stackyard.operator.request import VerbRequest

__all__ = ["inner_run"]


@click.command("inner-run", cls=Command, hidden=True)
@click.option("--site", "folder", metavar="DIR", required=True, help="The site that the outer operator sent.")
@pass_session
def inner_run(session: Session, folder: str) -> Result:
    """Run what an outer operator requests on standard input, and answer in records.

    For stackyard itself: it starts this on the hosts that it delegates to.
    """
    from stackyard.operator.delegation import serving_side  # lazy: asyncio and pydantic
    from stackyard.operator.verbs import run_verb  # lazy: everything
    from stackyard.scenario.node_install import install_pve  # lazy: as above

    async def run(verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        own = dataclasses.replace(request, site=folder)
        return await run_verb(verb, own, emit, install_pve=install_pve)

    ends = serving_side.ChannelEnds(
        reading=sys.stdin.fileno(),
        writing=_private_output(),
        redactor=_redactor(folder),
        folder=Path(folder) / directories.PROJECT_FOLDER,
    )
    is_well = session.run(serving_side.serve(ends, run))
    status = ExitStatus.DONE if is_well else ExitStatus.FAILED
    return Result(document={"success": is_well}, status=status)


def _private_output() -> int:
    """Keep standard output for records alone: whatever else would be printed goes to standard error."""
    records = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return records


def _redactor(folder: str) -> Redactor:
    from stackyard.sources.site.load import Site  # lazy: pydantic

    # What is wrong with the site is an answer to the order, and there is no order yet.
    with contextlib.suppress(StackyardError):
        return Site.open(folder).redactor()
    return NOTHING_SECRET
