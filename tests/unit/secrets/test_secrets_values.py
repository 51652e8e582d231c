"""Values are resolved and spelled as SOPS does it."""

from __future__ import annotations

import datetime
import math

import pytest

from stackyard.secrets.values import (
    Scalar,
    Timestamp,
    UnknownTypeError,
    from_bytes,
    resolve_plain,
    resolve_tagged,
    to_bytes,
    to_python,
    type_name,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("NULL", None),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("on", "on"),
        ("42", 42),
        ("-7", -7),
        ("+5", 5),
        ("017", 15),
        ("0o17", 15),
        ("08", 8.0),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("1e400", "1e400"),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("2020-01-02", Timestamp("2020-01-02T00:00:00Z")),
        ("2020-1-2", Timestamp("2020-01-02T00:00:00Z")),
        ("2020-13-02", "2020-13-02"),
        ("2001-12-14t21:59:43.10-05:00", Timestamp("2001-12-14T21:59:43.1-05:00")),
        ("2001-12-14 21:59:43.5", Timestamp("2001-12-14T21:59:43.5Z")),
        ("2001-12-14 21:59:43.10 -5", "2001-12-14 21:59:43.10 -5"),
        ("2001-12-14T21:59:43", "2001-12-14T21:59:43"),
    ],
)
def test_an_unquoted_scalar_means_what_it_means_to_sops(text: str, value: Scalar) -> None:
    found = resolve_plain(text)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_a_float() -> None:
    assert isinstance(found := resolve_plain(".nan"), float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("tag:yaml.org,2002:str", "5", "5"),
        ("tag:yaml.org,2002:float", "5", 5.0),
        ("tag:yaml.org,2002:binary", "aGk=", "hi"),
        ("tag:yaml.org,2002:binary", "/w==", b"\xff"),
        ("!own", "5", "5"),
    ],
)
def test_a_tag_says_what_a_scalar_is(tag: str, text: str, value: Scalar) -> None:
    assert resolve_tagged(tag, text) == value


@pytest.mark.parametrize(("tag", "text"), [("int", "x"), ("bool", "1"), ("binary", "%"), ("null", "x")])
def test_a_scalar_that_is_not_what_its_tag_says_is_refused(tag: str, text: str) -> None:
    with pytest.raises(UnknownTypeError):
        resolve_tagged(f"tag:yaml.org,2002:{tag}", text)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("grüße", "grüße".encode()),
        (True, b"True"),
        (42, b"42"),
        (1.0, b"1"),
        (1.5, b"1.5"),
        (1e21, b"1000000000000000000000"),
        (-1.5e-7, b"-0.00000015"),
        (math.inf, b"+Inf"),
        (b"\xff", b"\xff"),
        (Timestamp("2020-01-02T00:00:00Z"), b"2020-01-02T00:00:00Z"),
        (None, b""),
    ],
)
def test_a_value_is_spelled_for_the_mac_as_go_spells_it(value: Scalar, data: bytes) -> None:
    assert to_bytes(value) == data


@pytest.mark.parametrize("value", ["text", b"\xff", 42, -1, 1.5, 1e300, 3.0, True, False, math.inf])
def test_a_value_comes_back_from_its_bytes(value: Scalar) -> None:
    found = from_bytes(type_name(value), to_bytes(value))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "data"), [("int", b"x"), ("bool", b"yes"), ("float", b"."), ("sometype", b"")]
)
def test_bytes_that_are_not_their_type_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(UnknownTypeError):
        from_bytes(name, data)


def test_a_time_becomes_a_datetime_with_its_zone() -> None:
    assert to_python(Timestamp("2001-12-14T21:59:43.123456789Z")) == datetime.datetime(
        2001, 12, 14, 21, 59, 43, 123456, tzinfo=datetime.UTC
    )
