"""JSON from outside: read as orjson and Python read it, or refused with its place."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bombs import DEEP_JSON

from stackyard.base.documents.jsontext import JsonError, JsonLimitError, parse_json, parse_json_pairs
from stackyard.base.documents.limits import DocumentLimits

FEW = DocumentLimits(size=1_000, depth=5, values=20)


@pytest.mark.parametrize("name", DEEP_JSON)
def test_nesting_is_refused(name: str) -> None:
    with pytest.raises(JsonError):
        parse_json(DEEP_JSON[name])
    with pytest.raises(json.JSONDecodeError):
        parse_json_pairs(DEEP_JSON[name])


@pytest.mark.parametrize("read", [parse_json, parse_json_pairs])
@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ('{"a":\n ["[[", {"b": [[[1]]]}]}', "nested deeper than 5 levels", (2, 17)),
        ("[" + "1," * 30 + "1]", "more than 20 values", (1, 1)),
        ('"' + "a" * 2_000 + '"', "larger than 1000 bytes", (1, 1)),
    ],
)
def test_a_limit_says_which_it_is_and_where(
    read: object, text: str, problem: str, place: tuple[int, int]
) -> None:
    assert callable(read)
    with pytest.raises(JsonLimitError) as caught:
        read(text, limits=FEW)
    assert caught.value.msg == problem
    assert (caught.value.lineno, caught.value.colno) == place


def test_a_hundred_levels_are_read() -> None:
    text = "[" * 100 + "]" * 100
    assert parse_json(text) == json.loads(text)
    assert parse_json(memoryview(text.encode())) == json.loads(text)
    with pytest.raises(JsonLimitError):
        parse_json(f"[{text}]")


def test_brackets_and_commas_in_texts_count_for_nothing() -> None:
    text = json.dumps({"a": "[{," * 200, "b": '\\"[[,'})
    assert parse_json(text, FEW) == json.loads(text)


def test_a_long_string_needs_no_memory_for_each_of_its_characters() -> None:
    text = json.dumps(['\n,"[' * 100_000])
    few = DocumentLimits(size=10**9, depth=5, values=20)
    assert parse_json(text, few) == json.loads(text)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=100, deadline=None)
@given(_VALUES, st.integers(1, 6))
def test_what_is_within_the_limits_is_read_and_the_rest_refused(value: object, depth: int) -> None:
    try:
        text = orjson.dumps(value)
    except TypeError:
        return
    limits = DocumentLimits(size=10_000, depth=depth, values=10_000)
    is_deep = _depth(orjson.loads(text)) > depth
    try:
        assert parse_json(text, limits) == orjson.loads(text)
        assert not is_deep
    except JsonLimitError:
        assert is_deep


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='[]{}",:\\ 1eE.-truefalsn\n', max_size=60) | st.text(max_size=60))
def test_any_text_is_read_as_others_read_it_or_is_an_error(text: str) -> None:
    try:
        value = parse_json(text)
    except JsonError:
        with pytest.raises(ValueError):  # noqa: PT011 - each reader has its own
            orjson.loads(text)
        return
    assert value == orjson.loads(text)
