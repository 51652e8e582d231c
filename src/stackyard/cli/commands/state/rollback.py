"""`stackyard state rollback`: an earlier version as the current one."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.commands.state.versions import version_document
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

__all__ = ["rollback"]


@click.command("rollback", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.argument("version", type=click.IntRange(1))
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the version and the audit log.")
@store_options
def rollback(name: str, version: int, reason: str, choice: StoreChoice) -> Result:
    """Restore an earlier version as a new version.

    Nothing is lost: the replaced version stays. The content gets a serial above all others, and every client
    accepts it as the newest. If the engine encrypted the state, the serial cannot change without the key:
    that version is served unchanged.

    This changes the state, not the infrastructure: plan afterwards, and read the plan.

    \b
    stackyard state versions env/dev/pve1
    stackyard state diff env/dev/pve1 12
    stackyard state rollback env/dev/pve1 12 --reason 'bad apply'
    """  # noqa: D301 - click reads the control character
    with open_service(choice) as service:
        new = service.versions.roll_back(name, version, current_actor(), note=reason)
    text = f"{name} is version {version} again, as version {new.number} with serial {new.serial}."
    return Result(
        document={"name": name, "from_version": version, "version": version_document(new)},
        show=lambda writer: writer.line(text),
    )
