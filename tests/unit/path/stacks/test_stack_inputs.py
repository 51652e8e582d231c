"""Outputs that flow from one stack to another: never made up, bound to the state they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from stackyard.path.stacks.inputs import GivenState, InputsMissingError, collect_inputs
from stackyard.sources.stacks.model import Dependency, Stack, StackSettings


def _state(**outputs: Any) -> bytes:
    rows = {name: {"value": value, "type": "string"} for name, value in outputs.items()}
    if "token" in rows:
        rows["token"]["sensitive"] = True
    return orjson.dumps(
        {
            "version": 4,
            "terraform_version": "1.10.0",
            "serial": 7,
            "lineage": "l",
            "outputs": rows,
            "resources": [],
        }
    )


def _stack(*after: Dependency) -> Stack:
    return Stack(name="app", folder=Path("/x/app"), path="stacks/app", settings=StackSettings(after=after))


def test_values_keep_their_types_and_say_where_they_come_from() -> None:
    stack = _stack(Dependency(stack="net", outputs={"bridge": "name", "vlans": "ids"}))
    given = GivenState.read(_state(name="${vmbr0}", ids=[1, 2], other="x"))
    inputs = collect_inputs(stack, {"net": given})
    assert inputs.values == {"bridge": "${vmbr0}", "vlans": [1, 2]}
    assert inputs.binding == "net l/7"
    text = inputs.var_files[0].content.decode()
    # A template mark in a value is data.
    assert 'bridge = "$${vmbr0}"' in text
    assert "hidden" not in repr(inputs)


def test_a_sensitive_output_is_masked_wherever_it_turns_up() -> None:
    stack = _stack(Dependency(stack="net", outputs={"api": "token"}))
    inputs = collect_inputs(stack, {"net": GivenState.read(_state(token="s3cr3t-value"))})
    assert inputs.secrets == ("s3cr3t-value",)
    assert "s3cr3t-value" not in repr(inputs)


@pytest.mark.parametrize("states", [{}, {"net": GivenState()}, {"net": GivenState.read(_state(other="1"))}])
def test_a_stack_waits_for_outputs_that_are_not_there(states: dict[str, GivenState]) -> None:
    stack = _stack(Dependency(stack="net", outputs={"bridge": "name"}), Dependency(stack="dns"))
    with pytest.raises(InputsMissingError, match=r"stack:net \(name\)") as caught:
        collect_inputs(stack, states)
    assert caught.value.waiting_for == ("net",)
