"""`stackyard state prune`: drop versions by number and age."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.commands.state.words import PERIOD
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["prune"]


@click.command("prune", cls=Command)
@click.argument("prefix", required=False, default="", shell_complete=complete_states)
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="Keep the newest N versions of each state, regardless of age.",
)
@click.option(
    "--older-than",
    type=PERIOD,
    default="30d",
    show_default=True,
    metavar="AGE",
    help="Keep all versions younger than this: 12h, 30d, 8w.",
)
@click.option(
    "--keep-refused",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="N",
    help="Keep the newest N refused writes of each state.",
)
@store_options
def prune(prefix: str, keep: int, older_than: float, keep_refused: int, choice: StoreChoice) -> Result:
    """Delete old versions of the states at or below PREFIX; without PREFIX, of all states.

    A version is deleted only if it is beyond the number and older than the age. The current version and all
    entries of the audit log always stay. Deleted versions cannot be restored.
    """
    from stackyard.state import Policy  # lazy: only when this verb runs

    policy = Policy(keep_versions=keep, keep_versions_s=older_than, keep_quarantined=keep_refused)
    actor, dropped = current_actor(), {}
    with open_service(choice, policy=policy) as service:
        for name in list(service.names(prefix)):
            dropped[name] = {
                "versions": service.versions.drop_old(name, actor),
                "refused": service.contents.drop_old_quarantined(name),
            }
    return Result(document={"dropped": dropped}, show=lambda writer: _show(writer, dropped))


def _show(writer: TextWriter, dropped: dict[str, dict[str, int]]) -> None:
    changed = {name: row for name, row in dropped.items() if any(row.values())}
    if not changed:
        writer.line("Nothing was old enough to be dropped.")
        return
    rows = [(name, str(row["versions"]), str(row["refused"])) for name, row in changed.items()]
    writer.table(("state", "versions dropped", "refused writes dropped"), rows)
