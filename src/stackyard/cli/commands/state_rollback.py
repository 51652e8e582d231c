"""`stackyard state rollback`: an earlier version as the current one."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state_versions import version_document
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options

__all__ = ["rollback"]


@click.command("rollback", cls=Command)
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the version and audited.")
@store_options
def rollback(name: str, version: int, reason: str, choice: StoreChoice) -> Result:
    """Make an earlier version the current one, as a new version.

    Nothing is lost: what was current stays among the versions. The content gets a serial above all others, so
    that every client takes it for the newest. A state that the engine encrypted cannot be given another
    serial without the key: that version is served as it is.

    This changes what the engine believes, not what exists: plan afterwards, and read the plan.

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
        show=lambda paper: paper.line(text),
    )
