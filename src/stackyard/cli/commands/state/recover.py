"""`stackyard state recover`: a state that an apply could not store, and the stored one."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import FileError, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.diff import difference_document, show_difference
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.state import StateService

__all__ = ["lock_state", "recover"]

_FILE, _STORE = "file", "store"


@click.command("recover", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option("--file", "path", metavar="FILE", help="The state file (default: the one that an apply left).")
@click.option(
    "--use",
    type=click.Choice((_FILE, _STORE)),
    help="Store the file as the next version of the state, or keep the stored state and set the file aside.",
)
@store_options
def recover(name: str, path: str | None, use: str | None, choice: StoreChoice) -> Result:
    """Compare a state that an apply could not store with the stored one, and choose one of them.

    If an apply cannot reach the state store, it leaves the new state in `errored.tfstate`. The next run
    stores it, unless the stored state has changed since. In that case, compare the two here, and choose with
    --use. Neither is lost: the stored state stays as a version, and the file is kept under another name.

    \b
    stackyard state recover env/dev/pve1               show the differences
    stackyard state recover env/dev/pve1 --use file    store the file as the next version
    stackyard state recover env/dev/pve1 --use store   keep the stored state
    """  # noqa: D301 - click reads the control character
    from stackyard.engine.errored import move_away  # lazy: only when this verb runs
    from stackyard.state.difference import compare_states  # lazy: as above

    file = Path(path) if path else _find_errored_state(name, choice)
    try:
        content = file.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", file) from err
    with open_service(choice) as service:
        stored = service.contents.read(name)
        found = None if stored is None else compare_states(stored.body.data, content)
        if use == _FILE:
            _store(service, name, content)
    moved = None if use is None else move_away(file, "stored" if use == _FILE else "set-aside")
    document: dict[str, Any] = {
        "name": name,
        "file": str(file),
        "used": use,
        "kept_as": None if moved is None else str(moved),
        "difference": None if found is None else difference_document(found),
    }

    def show(writer: Any) -> None:
        if found is None:
            writer.line(f"{name} has no content yet; {file} is all there is.")
        else:
            show_difference(writer, found, f"{name}: stored -> {file}")
        if use is None:
            writer.line(f"Take one: stackyard state recover {name} --use file, or --use store.")
        else:
            writer.line(f"The {use} is the state now; the file is kept as {moved}.")

    return Result(document=document, show=show)


def _find_errored_state(name: str, choice: StoreChoice) -> Path:
    """Return the file that an apply left for a state."""
    from stackyard.engine.errored import find_errored_state_in  # lazy: only when this verb runs

    if choice.store is not None:
        raise UsageError("The store that is named has no work folder beside it: name the file with --file.")
    work = choice.base() / "work" / name.replace("/", "--")
    found = find_errored_state_in(work, work / ".terraform")
    if found is None:
        raise UsageError(f"No apply left a state of {name} behind in {work}; name it with --file.")
    return found


def _store(service: StateService, name: str, content: bytes) -> None:
    """Make a content the next version of a state."""
    from stackyard.state.document import with_serial  # lazy: only when this verb runs
    from stackyard.state.inside import read_view  # lazy: as above

    view = read_view(content)
    with lock_state(service, name) as lock_id:
        head = service.head(name)
        serial, lineage = head.top_serial + 1, head.lineage or view.lineage
        service.contents.write(name, with_serial(content, serial, lineage), current_actor(), lock_id=lock_id)


@contextlib.contextmanager
def lock_state(service: StateService, name: str) -> Iterator[str]:
    """Hold the lock of a state for the length of a block; give its id.

    Raises:
        StateLockedError: Another run holds it.
    """
    from stackyard.state.lockinfo import LockInfo, make_lock_info  # lazy: only when a state is changed

    actor, lock_id = current_actor(), str(uuid.uuid4())
    info = LockInfo(id=lock_id, operation="OperationTypeState", who=actor.principal)
    service.locks.lock(name, make_lock_info(info), actor)
    try:
        yield lock_id
    finally:
        service.locks.unlock(name, lock_id, actor)
