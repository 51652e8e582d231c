"""Readers of JSON meet objects that are nested more deeply than a stack is, and say so in their own words."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.support.bombs import DEEP_JSON

from pvelab.seeds.read import decode_seed
from pvelab.server.decode import decode_json
from pvelab.server.problems import PveError
from stackyard.base.errors import Location, StackyardError
from stackyard.controller.guest import _spec
from stackyard.inventory.contract import parse as parse_inventory
from stackyard.operator.delegation.protocol import InnerRequest
from stackyard.sources.deployment.edit import set_values
from stackyard.sources.deployment.text import ObjectSyntaxError, parse
from stackyard.state.document import read_document
from stackyard.state.lockinfo import parse_lock_info
from stackyard.state.refusals import BodyRefusedError

READERS: dict[str, Callable[[bytes], object]] = {
    "a deployment object": lambda data: parse(data, "object"),
    "a state": read_document,
    "a lock": parse_lock_info,
    "an inventory": parse_inventory,
    "a spec": _spec,
    "a seed": lambda data: decode_seed(data.decode(), "seed.json"),
    "an order": InnerRequest.read,
    "a request to the lab": decode_json,
}


@pytest.mark.parametrize("name", DEEP_JSON)
@pytest.mark.parametrize("reader", READERS)
def test_nesting_is_an_error_of_the_reader(reader: str, name: str) -> None:
    with pytest.raises((StackyardError, PveError)):
        READERS[reader](DEEP_JSON[name].encode())


def test_a_state_that_is_too_deep_is_refused_for_that_reason() -> None:
    state = {"version": 4, "serial": 1, "lineage": "a", "resources": [], "outputs": {}}
    assert read_document(json.dumps(state).encode()).serial == 1
    deep = json.dumps(state)[:-1] + ', "check_results": ' + "[" * 200 + "]" * 200 + "}"
    with pytest.raises(BodyRefusedError, match="The state is not taken: it is nested deeper than 100 levels"):
        read_document(deep.encode())


def test_an_object_that_is_too_deep_is_refused_at_its_place() -> None:
    with pytest.raises(ObjectSyntaxError, match="object is nested deeper than 64 levels") as caught:
        parse(b'{\n "a": ' + b"[" * 100 + b"]" * 100 + b"}", "object")
    assert caught.value.where == Location("object", 2, 6 + 64)


@pytest.mark.parametrize("value", ["9" * 5_000, "[" * 100_000, "[" * 200 + "]" * 200])
def test_a_value_on_the_command_line_that_is_no_json_is_text(value: str) -> None:
    assert set_values({}, [f"a={value}"]) == {"a": value}
