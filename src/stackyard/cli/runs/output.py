"""The run of `stackyard output`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.cli.result import Result
from stackyard.cli.runs.target import ChosenTarget
from stackyard.engine import tofu
from stackyard.path.outputs import read_guests

if TYPE_CHECKING:
    from stackyard.cli.session import Session

__all__ = ["run_output"]


async def run_output(session: Session, values: dict[str, Any]) -> Result:
    """Read the guests of the target that the options name from its state."""
    chosen = ChosenTarget(session, values, by_state=True)
    target = chosen.resolved.target
    # The state is read as it is: that needs no engine, no lock and no room on the disk.
    guests = read_guests(chosen.store, target)
    if guests is None:
        guests = await _ask_engine(chosen)
    rows = [
        (key, str(guest["vm_id"]), guest["type"], guest["node"], ", ".join(guest["ipv4"]) or "-")
        for key, guest in sorted(guests.items())
    ]
    return Result(
        document={"target": str(target), "guests": guests},
        show=lambda writer: (
            writer.table(("guest", "vm id", "type", "node", "addresses"), rows)
            if rows
            else writer.line("There is nothing in the state yet.")
        ),
    )


async def _ask_engine(chosen: ChosenTarget) -> dict[str, Any]:
    """Return the guests of a state that the engine has encrypted."""
    async with chosen.run("output", may_be_empty=True) as run:
        found = (await tofu.output(run.workdir)).get("guests")
    return {} if found is None else dict(found.value)
