"""`stackyard runs follow`: the events of a run on any machine, as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.runs.records import open_store, run_document
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.state.run_records import RecordedRun

__all__ = ["follow"]

# A run that dies says nothing any more: it is looked at again after this time.
_LOOK_EVERY_S = 2.0


@click.command("follow", cls=Command)
@click.argument("run", default="last")
@pass_session
def follow(session: Session, /, run: str) -> Result:
    """Show the events of a run on any machine as they happen, until it ends.

    RUN is an id, the start of an id, or `last`. The exit status is 0 if the run succeeded, and 1 otherwise.
    Ctrl-C ends this command, not the run.

    \b
    stackyard runs follow
    stackyard --events runs follow 4f1c
    """  # noqa: D301 - click reads the control character
    import asyncio  # lazy: only when this verb runs

    async def watch_run() -> RecordedRun:
        return await asyncio.to_thread(_follow, session, run)

    ended = session.run(watch_run())
    text = f"{ended.verb} of {ended.target}: {ended.outcome.value}"
    return Result(
        document=run_document(ended),
        show=lambda writer: writer.line(text),
        status=ExitStatus.DONE if ended.outcome.value == "done" else ExitStatus.FAILED,
    )


def _follow(session: Session, which: str) -> RecordedRun:
    from stackyard.clients.objects import watch  # lazy: only when this verb runs
    from stackyard.state.run_records import Outcome, RunRecords, events_prefix  # lazy: as above

    with open_store() as objects:
        records = RunRecords(objects)
        found = records.find(which)
        seen = ""
        with watch(objects, events_prefix(found.id)) as changes:
            while True:
                seen = _show_new(session, objects, found.id, seen)
                found = records.find(found.id)
                if found.outcome is not Outcome.RUNNING:
                    # What came between the last look and the end.
                    _show_new(session, objects, found.id, seen)
                    return found
                changes.wait(_LOOK_EVERY_S)


def _show_new(session: Session, objects: Objects, run_id: str, seen: str) -> str:
    from stackyard.base import events  # lazy: only when this verb runs
    from stackyard.state.run_records import RunRecords  # lazy: as above

    for key, document in RunRecords(objects).events(run_id, after=seen):
        seen = key
        event = events.read(document)
        if event is not None:
            session.emit(event)
    return seen
