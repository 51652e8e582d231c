"""The runs of `stackyard inventory` on a stack: from its state, as `apply` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import files
from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.inventory.stack_hosts import read_stack_hosts
from stackyard.path.stacks.dependencies import read_stack_state
from stackyard.path.stacks.publish import stack_inventory_file, write_hosts

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.inventory.stack_hosts import StackHosts
    from stackyard.path.target import Target

__all__ = ["run_stack_publish", "run_stack_render"]

# A state is read, and nothing is run: no option says how.
_NO_OPTIONS = {"provider": "builtin", "is_provider_given": False, "parallelism": None, "lock_wait": None}


async def run_stack_render(session: Session, values: dict[str, Any]) -> Result:
    """Print the inventory of the stack that the options name."""
    _, target, hosts = await _read(session, values)
    form, out = values["form"], values["out"]
    document = hosts.as_list() if form == "list" else hosts.as_document()
    text = hosts.as_yaml() if form == "yaml" else json.dumps(document, indent=2) + "\n"
    if out is not None:
        files.replace_file(Path(out), text.encode())

    def show(writer: TextWriter) -> None:
        writer.lines(f"Written to {out}." if out is not None else text.removesuffix("\n"))

    return Result(
        document={"target": str(target), "inventory": hosts.as_document(), "file": out},
        show=show,
    )


async def run_stack_publish(session: Session, values: dict[str, Any]) -> Result:
    """Write the inventory of the stack that the options name into the folder that Ansible reads."""
    place: str | None = values["place"]
    if place is not None and "://" in place:
        raise UsageError(
            f"The inventory of a stack is a file in a folder that Ansible reads, and `{place}` is none."
        )
    command, target, hosts = await _read(session, values)
    path = stack_inventory_file(command.store.base, target)
    if place is not None:
        path = Path(place) / path.name
    before = path.read_bytes() if path.exists() else None
    written = write_hosts(path, hosts)
    is_new = before != (None if written is None else written.read_bytes())
    said = f"{path} is up to date."
    if is_new:
        said = f"Published at {path}." if written is not None else f"There are no hosts: removed {path}."
    return Result(
        document={"target": str(target), "where": None if written is None else str(path), "is_new": is_new},
        show=lambda writer: writer.line(said),
    )


async def _read(session: Session, values: dict[str, Any]) -> tuple[StackCommand, Target, StackHosts]:
    """Return the inventory of a stack as its state has it now.

    Raises:
        IncompleteError: Something is missing.
        EncryptedStateError: The engine encrypted the state.
    """
    command = StackCommand(session, {**values, **_NO_OPTIONS})
    resolved = (await command.choose(values["target"])).resolved
    data = await read_stack_state(resolved, command.settings(), command.engines)
    return command, resolved.target, read_stack_hosts(str(resolved.target), data)
