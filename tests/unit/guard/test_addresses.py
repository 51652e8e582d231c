"""Addresses: a resource stands for its instances, a module for all below it, and no name for more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.guard.addresses import covers, list_shortest, split_names

DEEP = 'module.web["a, b"].module.pool[0].aws_instance.this["x].y"]'
KEYS = st.one_of(
    st.integers(0, 99).map(lambda number: f"[{number}]"),
    st.text(alphabet='ab,].["\\ ', max_size=5).map(
        lambda text: '["' + text.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    ),
    st.just(""),
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_-]{0,5}", fullmatch=True)
PARTS = st.tuples(NAMES, KEYS)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    modules = [f"module.{name}{key}" for name, key in draw(st.lists(PARTS, max_size=3))]
    name, key = draw(PARTS)
    return ".".join((*modules, f"null_resource.{name}{key}"))


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("aws_instance.x", "aws_instance.x"),
        ("aws_instance.x", "aws_instance.x[0]"),
        ("aws_instance.x", 'aws_instance.x["a"]'),
        ("module.web", "module.web.aws_instance.x"),
        ("module.web", "module.web[2].aws_instance.x[1]"),
        ("module.web", DEEP),
        ('module.web["a, b"]', DEEP),
        ('module.web["a, b"].module.pool', DEEP),
        ('module.web["a, b"].module.pool[0]', DEEP),
        ('module.web["a, b"].module.pool[0].aws_instance.this', DEEP),
    ],
)
def test_a_name_covers_what_is_below_it(name: str, address: str) -> None:
    assert covers(name, address)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("", "aws_instance.x"),
        ("", ""),
        ("*", "aws_instance.x"),
        ("module", "module.web.aws_instance.x"),
        ("aws_instance", "aws_instance.x"),
        ("aws_instance.x[0]", "aws_instance.x[1]"),
        ("aws_instance.x[0]", "aws_instance.x"),
        ("aws_instance.x", "aws_instance.xy"),
        ("aws_instance.x", "module.a.aws_instance.x"),
        ("module.web", "module.web2.aws_instance.x"),
        ("module.web.aws_instance", "module.web.aws_instance.x"),
        ('module.web["a', DEEP),
        ("module.web.", "module.web.aws_instance.x"),
    ],
)
def test_a_part_of_a_word_covers_nothing(name: str, address: str) -> None:
    assert not covers(name, address)


@given(addresses(), addresses())
def test_only_what_an_address_begins_with_covers_it(one: str, other: str) -> None:
    assert covers(one, one)
    if covers(one, other) and one != other:
        assert other.startswith(one)
        assert other[len(one)] in ".["


def test_commas_in_an_address_separate_nothing() -> None:
    assert split_names(f" web, {DEEP} ,,db") == ("web", DEEP, "db")
    assert split_names("") == ()


def test_an_open_bracket_swallows_no_other_name() -> None:
    assert split_names('a["x,b,c') == ('a["x', "b", "c")
    assert split_names("debian[12.img,web") == ("debian[12.img", "web")


@given(st.lists(addresses(), max_size=5))
def test_addresses_that_are_joined_are_split_again(listed: list[str]) -> None:
    assert split_names(",".join(listed)) == tuple(listed)


@given(st.text(alphabet='ab,[]"\\ .', max_size=30))
def test_any_text_can_be_split_and_loses_only_commas_and_space(text: str) -> None:
    kept = "".join(split_names(text)).replace(",", "").replace(" ", "")
    assert kept == text.replace(",", "").replace(" ", "")


def test_whole_modules_and_resources_are_named_where_all_of_them_goes() -> None:
    going = ["module.a.x.y[0]", "module.a.x.z", 'x.all["a"]', 'x.all["b"]', "x.some[0]", "x.one"]
    assert list_shortest(going, ["x.some[1]", "module.b.x.y"]) == (
        "module.a",
        "x.all",
        "x.one",
        "x.some[0]",
    )


@given(st.sets(addresses(), max_size=8), st.sets(addresses(), max_size=4))
def test_the_shortest_names_cover_all_that_goes_and_nothing_that_stays(
    going: set[str], kept: set[str]
) -> None:
    going -= kept
    names = list_shortest(going, kept)
    assert all(any(covers(name, address) for name in names) for address in going)
    # A resource with and one without an index cannot both be in a configuration.
    assert not any(covers(name, address) and name not in going for name in names for address in kept)
