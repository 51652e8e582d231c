"""The runs of `stackyard output` and `stackyard import` on a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events
from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.engine import statefile, tofu
from stackyard.path.stacks.apply import record_stack
from stackyard.path.stacks.dependencies import read_stack_state
from stackyard.state.inside import EncryptedStateError, StateOutput, read_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.runs.stacks.chosen import ChosenStack
    from stackyard.cli.session import Session

__all__ = ["run_stack_import", "run_stack_output"]

_HIDDEN = "(sensitive)"


async def run_stack_output(session: Session, values: dict[str, Any]) -> Result:
    """Read the outputs of the stack that the options name from its state."""
    command = StackCommand(session, values)
    chosen = await command.choose(values["target"])
    outputs = await _read_outputs(command, chosen)
    if values.get("raw"):
        return _raw(outputs, values["raw"], str(chosen.resolved.target))
    rows = [(name, _shown(output)) for name, output in sorted(outputs.items())]
    return Result(
        document={
            "target": str(chosen.resolved.target),
            "outputs": {
                name: {
                    "value": None if output.is_hidden else output.value,
                    "sensitive": output.is_hidden,
                }
                for name, output in sorted(outputs.items())
            },
        },
        show=lambda writer: (
            writer.table(("output", "value"), rows) if rows else writer.line("The state has no outputs.")
        ),
    )


async def _read_outputs(command: StackCommand, chosen: ChosenStack) -> Mapping[str, StateOutput]:
    data = await read_stack_state(chosen.resolved, command.settings(), command.engines)
    if data is None:
        return {}
    try:
        return {output.name: output for output in read_view(data).outputs.values()}
    except EncryptedStateError:
        # Only the engine has the key.
        async with chosen.run("output") as run:
            found = await tofu.output(run.workdir)
        return {
            name: StateOutput(name=name, value=one.value, is_sensitive=one.sensitive)
            for name, one in found.items()
        }


def _shown(output: StateOutput) -> str:
    if output.is_hidden:
        return _HIDDEN
    return output.value if isinstance(output.value, str) else orjson.dumps(output.value).decode()


def _raw(outputs: Mapping[str, StateOutput], name: str, target: str) -> Result:
    if name not in outputs:
        known = ", ".join(sorted(outputs)) or "none"
        raise UsageError(f"{target} has no output `{name}`; it has {known}.")
    value = outputs[name].value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return Result(
        document={"target": target, "output": name, "value": value},
        # As it is: the user asked for it by name, to give it to a program.
        show=lambda writer: writer.text(text),
    )


async def run_stack_import(session: Session, values: dict[str, Any]) -> Result:
    """Take resources that exist into the state of a stack, each at the address of a block in its code."""
    words = tuple(values["engine_words"])
    if not words or len(words) % 2:
        raise UsageError(
            "Name the address and the id of each resource: stackyard import stack:NAME ADDRESS ID ..."
        )
    pairs = list(zip(words[::2], words[1::2], strict=True))
    command = StackCommand(session, {**values, "engine_words": ()})
    chosen = await command.choose(values["target"])
    async with chosen.run("import", is_locked=True) as run:
        await record_stack(run, is_applied=False)
        for address, resource_id in pairs:
            with events.step(run.emit, f"import {address}", f"Importing {address}"):
                if run.served is not None:
                    run.served.begin()
                await statefile.import_resource(run.workdir, address, resource_id)
    target = str(chosen.resolved.target)
    return Result(
        document={"target": target, "imported": [{"address": a, "id": i} for a, i in pairs]},
        show=lambda writer: writer.line(
            f"Imported {len(pairs)}. `stackyard plan {target}` shows where the code differs from them.",
            style="green",
        ),
    )
