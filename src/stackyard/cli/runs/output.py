"""The run of `stackyard output`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from stackyard.cli.result import Result
from stackyard.cli.runs.target import ChosenTarget
from stackyard.engine import tofu
from stackyard.path.outputs import StateOutputs, read_outputs

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["run_output"]


async def run_output(session: Session, values: dict[str, Any]) -> Result:
    """Read the outputs of the target that the options name from its state."""
    chosen = ChosenTarget(session, values, by_state=True)
    target = chosen.resolved.target
    # The state is read as it is: that needs no engine, no lock and no room on the disk.
    found = read_outputs(chosen.store, target)
    if found is None:
        found = await _ask_engine(chosen)
    redact = chosen.resolved.redactor
    others = {name: _mask(value, redact) for name, value in found.others.items()}
    return Result(
        document={
            "target": str(target),
            "guests": dict(found.guests),
            **({"outputs": others} if others else {}),
        },
        show=lambda writer: _show(writer, found, others),
    )


def _mask(value: Any, redact: Any) -> Any:
    """Return a value with the secrets of the site masked: own code may have put one anywhere."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _mask(one, redact) for key, one in value.items()}
    return [_mask(one, redact) for one in value] if isinstance(value, list) else value


def _show(writer: TextWriter, found: StateOutputs, others: dict[str, Any]) -> None:
    rows = [
        (key, str(guest["vm_id"]), guest["type"], guest["node"], ", ".join(guest["ipv4"]) or "-")
        for key, guest in sorted(found.guests.items())
    ]
    if rows:
        writer.table(("guest", "vm id", "type", "node", "addresses"), rows)
    if others:
        shown = [
            (name, value if isinstance(value, str) else orjson.dumps(value).decode())
            for name, value in others.items()
        ]
        writer.table(("output", "value"), shown)
    if not rows and not others:
        writer.line("There is nothing in the state yet.")


async def _ask_engine(chosen: ChosenTarget) -> StateOutputs:
    """Return the outputs of a state that the engine has encrypted."""
    async with chosen.run("output", may_be_empty=True) as run:
        found = await tofu.output(run.workdir)
    return StateOutputs.of({name: (one.value, one.sensitive) for name, one in found.items()})
