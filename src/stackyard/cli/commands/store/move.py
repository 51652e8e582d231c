"""`stackyard store move`: everything from one store to another."""

from __future__ import annotations

import contextlib
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import current_actor
from stackyard.cli.commands.store.open_site import open_named, site_option, store_here
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.sources.store import ChosenStore
    from stackyard.state.store_move import MovedStore

__all__ = ["move"]


@click.command("move", cls=Command)
@click.argument("origin", metavar="FROM")
@click.argument("destination", metavar="TO", required=False)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for runs in progress.",
)
@click.option(
    "--abort",
    is_flag=True,
    help="Cancel a move that is not complete: runs can use FROM again. TO is not needed.",
)
@site_option
@pass_session
def move(session: Session, /, **values: Any) -> Result:
    """Move everything from one store to another.

    FROM and TO are addresses or folders. TO must be empty. The command copies most objects while runs
    continue. Then no new run starts: the command waits for the runs in progress, copies what changed since,
    compares both stores, and marks FROM as moved. After that, a run that still uses FROM fails, and the error
    shows the address of TO. Nothing in FROM is deleted. If the command is interrupted, run it again, or
    cancel the move with --abort.

    \b
    stackyard store move .stackyard/state s3://bucket/site
    stackyard store move s3://bucket/site postgresql://me@db/stackyard
    stackyard store move s3://bucket/site --abort
    """  # noqa: D301 - click reads the control character
    if values["abort"]:
        return _abort(values["origin"])
    if values["destination"] is None:
        raise UsageError("The destination store is missing.")
    if values["origin"] == values["destination"]:
        raise UsageError(f"{values['origin']} is both the source and the destination.")
    if _is_nested(values["origin"], values["destination"]):
        raise UsageError("One of the two stores is inside the other: choose prefixes side by side.")
    import asyncio  # lazy: only when this verb runs

    chosen = store_here(values["site"])
    _take_over_files(chosen, values["origin"])
    # Before the move: whoever is killed after it has the key already.
    kept = _carry_key(chosen, values["origin"], values["destination"])
    moved = session.run(asyncio.to_thread(_move, session, values))
    document = {
        "from": values["origin"],
        "to": values["destination"],
        "objects": moved.objects,
        "states": moved.states,
        "stopped_s": round(moved.stopped_s, 3),
        "key_file": None if kept is None else str(kept),
        "is_chosen": chosen.label == values["destination"],
    }
    return Result(document=document, show=lambda writer: _show(writer, document))


def _is_nested(one: str, other: str) -> bool:
    """Return whether two stores are in one bucket, one of them below the prefix of the other."""
    first, second = (urllib.parse.urlsplit(address) for address in (one, other))
    if first.scheme != "s3" or (first.scheme, first.netloc) != (second.scheme, second.netloc):
        return False
    shorter, longer = sorted((f"/{part.path.strip('/')}/" for part in (first, second)), key=len)
    return longer.startswith(shorter.replace("//", "/"))


def _move(session: Session, values: dict[str, Any]) -> MovedStore:
    from stackyard.state.store_move import move_store  # lazy: only when this verb runs

    def note(text: str) -> None:
        session.emit(events.LogLine(level=events.LogLevel.INFO, source="store", text=text))

    with (
        contextlib.closing(open_named(values["origin"], create=False)) as origin,
        contextlib.closing(open_named(values["destination"], create=True)) as destination,
    ):
        return move_store(
            origin,
            destination,
            values["destination"],
            actor=current_actor(),
            note=note,
            wait_s=values["wait"],
        )


def _abort(origin: str) -> Result:
    from stackyard.state.store_move import abort_move  # lazy: only when this verb runs

    with contextlib.closing(open_named(origin, create=False)) as objects:
        count = abort_move(objects, current_actor())
    text = f"The move is cancelled. Runs can use {origin} again; {count} states are no longer frozen."
    return Result(document={"from": origin, "thawed": count}, show=lambda writer: writer.line(text))


def _take_over_files(chosen: ChosenStore, origin: str) -> None:
    """Bring what earlier versions kept in files into the store that is about to be moved."""
    from stackyard.sources.store import earlier_files  # lazy: only when this verb runs

    own = _named(chosen, origin)
    if own is not None and own.address is None and earlier_files.are_there(own.base):
        with contextlib.closing(own.open_as_is(create=True)) as objects:
            earlier_files.take_over(own, objects)


def _named(chosen: ChosenStore, named: str) -> ChosenStore | None:
    """Return a store of this site by what a command line calls it; None for a folder of another one."""
    from stackyard.sources.store import ChosenStore  # lazy: only when this verb runs

    if "://" in named:
        return ChosenStore(base=chosen.base, address=named, site_key=chosen.site_key)
    own = ChosenStore(base=chosen.base, site_key=chosen.site_key)
    return own if Path(named).resolve() == own.folder.resolve() else None


def _carry_key(chosen: ChosenStore, origin: str, destination: str) -> Path | None:
    """Copy a key that was made for the old store to where that of the new store is looked for."""
    from stackyard.base import directories, files  # lazy: only when this verb runs
    from stackyard.sources.store.keys import made_key_file, read_keys  # lazy: as above

    old, new = _named(chosen, origin), _named(chosen, destination)
    if old is None or new is None:
        return None
    found, target = read_keys(old), made_key_file(new)
    if found is None or found.path != made_key_file(old) or found.path == target:
        return None
    if not target.exists():
        directories.ensure_private(target.parent)
        files.replace_file(target, found.path.read_bytes())
    return target


def _show(writer: Any, document: dict[str, Any]) -> None:
    writer.line(
        f"Moved {document['objects']} objects, {document['states']} of them states, to {document['to']}."
        f" No run could start for {document['stopped_s']:.1f} s.",
        style="green",
    )
    if document["key_file"]:
        writer.line(f"The site key is now in {document['key_file']}. Other machines need it. To print it:")
        writer.line("  stackyard store key show")
    if not document["is_chosen"]:
        writer.line(f"Now set the new store in site.yaml: `store: {document['to']}`", style="yellow")
