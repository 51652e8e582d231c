from __future__ import annotations

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.provider.private_data import read_private, write_private
from stackyard.provider.values import UNKNOWN, decode, encode, is_whole, is_zero

PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    PLAIN | st.just(UNKNOWN), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_a_value_comes_back_as_it_was_sent(value: Any) -> None:
    assert decode(encode(value)) == value


def test_an_unknown_value_of_which_something_is_known_is_unknown() -> None:
    refined = msgpack.packb({"a": msgpack.ExtType(12, msgpack.packb({1: False}))})
    assert decode(refined) == {"a": UNKNOWN}


def test_an_extension_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown extension 5"):
        decode(msgpack.packb(msgpack.ExtType(5, b"x")))


def test_a_number_that_no_float_holds_passes_as_its_digits() -> None:
    assert decode(msgpack.packb("0.1")) == "0.1"


def test_wholeness_looks_inside() -> None:
    assert is_whole({"a": [{"b": None}]})
    assert not is_whole({"a": [{"b": UNKNOWN}]})


@pytest.mark.parametrize("value", [None, "", 0, False, [], {}, 0.0])
def test_zero_is_what_the_older_sdk_takes_for_nothing(value: Any) -> None:
    assert is_zero(value)


@pytest.mark.parametrize("value", ["a", 1, True, [0], {"a": None}, UNKNOWN])
def test_anything_else_is_something(value: Any) -> None:
    assert not is_zero(value)


@given(st.dictionaries(st.text(), st.integers(0, 2**53) | st.text()))
def test_what_is_remembered_comes_back(remembered: dict[str, Any]) -> None:
    assert read_private(write_private(remembered)) == remembered


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"a": 1}', b'{"a": "!"}', b"\xff\x00"])
def test_what_somebody_else_remembered_is_nothing_to_us(data: bytes) -> None:
    assert read_private(data) == {}
