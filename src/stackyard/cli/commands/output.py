"""`stackyard output`: what a target's guests are called and where they are."""

from __future__ import annotations

from typing import Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import Chosen, target_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.engine import tofu
from stackyard.path.outputs import read_guests

__all__ = ["output"]


@click.command("output", cls=Command)
@target_options
@pass_session
def output(session: Session, /, **values: Any) -> Result:
    """Show the guests of TARGET as its state has them: ids, names, nodes, addresses."""
    return session.run(_output(session, values))


async def _output(session: Session, values: dict[str, Any]) -> Result:
    chosen = Chosen(session, values, by_state=True)
    target = chosen.resolved.target
    # The state is read as it is: that needs no engine, no lock and no room on the disk.
    guests = read_guests(chosen.base, target)
    if guests is None:
        guests = await _ask_engine(chosen)
    rows = [
        (key, str(guest["vm_id"]), guest["type"], guest["node"], ", ".join(guest["ipv4"]) or "-")
        for key, guest in sorted(guests.items())
    ]
    return Result(
        document={"target": str(target), "guests": guests},
        show=lambda paper: (
            paper.table(("guest", "vm id", "type", "node", "addresses"), rows)
            if rows
            else paper.line("There is nothing in the state yet.")
        ),
    )


async def _ask_engine(chosen: Chosen) -> dict[str, Any]:
    """Return the guests of a state that the engine has encrypted."""
    async with chosen.run(may_be_empty=True) as run:
        found = (await tofu.output(run.workdir)).get("guests")
    return {} if found is None else dict(found.value)
