"""Property strings, flags and sizes are read by the rules of Proxmox, everywhere the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.fields.properties import (
    flag,
    list_numbered,
    number,
    parse,
    parse_integer,
    parse_list,
    parse_size,
    render,
    render_size,
    text,
)

WORDS = st.text(alphabet="abcdefgxyz0123456789-_.:/", min_size=1, max_size=12)


def test_property_strings_are_read_and_written() -> None:
    drive = "local-lvm:vm-1-disk-0,ssd=1,size=2G"
    assert parse(drive, "file") == {"file": "local-lvm:vm-1-disk-0", "ssd": "1", "size": "2G"}
    assert render({"file": "a:b", "ssd": True, "aio": None, "rate": 12.5}) == "file=a:b,ssd=1,rate=12.5"
    assert render({"backup": False, "rate": 12.0}) == "backup=0,rate=12"


@given(st.dictionaries(WORDS, WORDS, min_size=1))
def test_parts_of_a_text_are_found_again(parts: dict[str, str]) -> None:
    assert parse(render(parts), "first") == parts


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("", {}),
        ("a:b,", {"file": "a:b"}),
        ("a:b,,size=1G", {"file": "a:b", "size": "1G"}),
        (" a:b , size=1G", {"file": "a:b", "size": "1G"}),
        ("size=", {"size": ""}),
        ("serial=a=b", {"serial": "a=b"}),
    ],
)
def test_an_empty_part_says_nothing(written: str, parts: dict[str, str]) -> None:
    assert parse(written, "file") == parts


@pytest.mark.parametrize("value", [1, "1", True, "on", "yes", "true", "Yes", "TRUE"])
def test_a_flag_is_on_in_every_spelling_of_proxmox(value: Any) -> None:
    assert flag(value) is True
    assert flag(value, default=False) is True


@pytest.mark.parametrize("value", [0, "0", False, "off", "no", "false", "", "2"])
def test_every_other_flag_is_off(value: Any) -> None:
    assert flag(value) is False
    assert flag(value, default=True) is False


def test_what_is_not_set_is_the_default() -> None:
    assert (flag(None), flag(None, default=True)) == (False, True)
    assert (parse_integer(None), parse_integer("", 7), number(None, -1), text(None)) == (0, 7, -1, "")


def test_numbers_are_whole_where_they_can_be() -> None:
    assert (parse_integer("2048"), parse_integer(" 12"), parse_integer("1.0")) == (2048, 12, 1)
    assert [(value, type(value)) for value in (number("1.0"), number("0.5"), number(3))] == [
        (1, int),
        (0.5, float),
        (3, int),
    ]


def test_lists_have_no_empty_elements() -> None:
    assert parse_list("noatime;;nodev;") == ["noatime", "nodev"]
    assert parse_list(None) == []


def test_numbered_properties_come_in_the_order_of_their_numbers() -> None:
    config = {"net10": "c", "net2": "b", "net0": "a", "netx": "", "nets": "", "ipconfig0": ""}
    assert list_numbered(config, "net") == [(0, "a"), (2, "b"), (10, "c")]


@given(st.integers(min_value=1, max_value=2**45))
def test_a_size_is_the_same_in_every_unit(size: int) -> None:
    assert parse_size(render_size(size)) == size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("8G", 8 * 2**30),
        ("512M", 2**29),
        ("4194304", 2**22),
        ("2T", 2**41),
        ("1.5K", 1536),
        ("2TiB", 2**41),
        ("4 gb", 2**32),
        # Proxmox cuts what is less than a byte.
        ("0.3K", 307),
    ],
)
def test_sizes_are_read_in_every_spelling(written: str, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "G", "-1G", "1P", "one", "none", None])
def test_what_is_no_size_is_none(written: str | None) -> None:
    assert parse_size(written) is None
