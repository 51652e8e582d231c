"""Any configuration that the engine lets through is answered with findings or a plan, never with a crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.provider_bench import KNOWN, proposed

from stackyard.provider.operations import Change, Operations
from stackyard.provider.schema import Attribute, Block, Nesting
from stackyard.provider.session import Session
from stackyard.provider.values import UNKNOWN, Object, decode, encode

WORDS = [
    "",
    "0",
    "a",
    "vm-1",
    "10.0.0.0/24",
    "10.0.0.1",
    "::1",
    "local:iso/a.img",
    "8G",
    "true",
    "../x",
    "é\n,=",
]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=8)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "number": st.integers(-2, 5000) | st.sampled_from([0, 1.5, 2**40, "0.1"]),
    "bool": st.booleans(),
}


def of_type(spelled: Any) -> st.SearchStrategy[Any]:
    if isinstance(spelled, str):
        return PLAIN[spelled]
    kind, inner = spelled
    if kind == "object":
        return st.fixed_dictionaries({name: st.none() | of_type(one) for name, one in inner.items()})
    if kind == "map":
        return st.dictionaries(st.sampled_from(["a", "b c"]), of_type(inner), max_size=2)
    return st.lists(of_type(inner), max_size=2)


def of_attribute(attribute: Attribute) -> st.SearchStrategy[Any]:
    if not (attribute.required or attribute.optional):
        return st.none()
    if attribute.nested is not None:
        one: st.SearchStrategy[Any] = of_block(attribute.nested.block)
        value = one if attribute.nested.nesting is Nesting.SINGLE else st.lists(one, max_size=2)
        if attribute.nested.nesting is Nesting.MAP:
            value = st.dictionaries(st.sampled_from(["a", "b c"]), one, max_size=2)
    else:
        value = of_type(attribute.type)
    value = value | st.just(UNKNOWN)
    return value if attribute.required else st.none() | value


def of_block(block: Block) -> st.SearchStrategy[Object]:
    parts: dict[str, st.SearchStrategy[Any]] = {
        name: of_attribute(attribute) for name, attribute in block.attributes.items()
    }
    for name, nested in block.blocks.items():
        if nested.nesting is Nesting.SINGLE:
            parts[name] = st.none() | of_block(nested.block)
            continue
        most = min(nested.max_items or 2, 2)
        parts[name] = st.lists(of_block(nested.block), min_size=nested.min_items, max_size=most)
    return st.fixed_dictionaries(parts)


@pytest.mark.parametrize("type_name", sorted({known.kind.names[0] for known in KNOWN.resources.values()}))
def test_any_configuration_is_answered(type_name: str) -> None:
    known = KNOWN.resources[type_name]
    operations = Operations(Session())
    block = known.schema.block

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(of_block(block), st.none() | of_block(block))
    def check(config: Object, before: Object | None) -> None:
        if any(problem.is_error for problem in operations.validate(known, type_name, config)):
            return
        prior = None if before is None else stored(block, before)
        change = Change(config=config, prior=prior, proposed=proposed(block, config, prior))
        result = operations.plan(known, change)
        assert [problem for problem in result.problems if "E-INTERNAL" in problem.summary] == []
        assert result.state is not None
        assert decode(encode(result.state)) == result.state
        assert set(result.state) == set(block.empty())

    check()


def stored(block: Block, config: Object) -> Object:
    """Make a state of a configuration: everything in it is known."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [known(inner) for inner in value]
        return None if value is UNKNOWN else value

    return block.complete(known(config))
