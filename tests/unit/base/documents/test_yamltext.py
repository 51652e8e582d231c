"""YAML from outside: read as PyYAML reads it, or refused with its place before it costs anything."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.bombs import DEEP_YAML, FULL_YAML

from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.documents.yamltext import (
    Limit,
    YamlLimitError,
    YamlValueError,
    check_yaml,
    parse_events,
    parse_yaml,
)

FEW = DocumentLimits(size=1_000, depth=5, values=20)


def place(err: yaml.YAMLError) -> tuple[int, int]:
    mark = getattr(err, "problem_mark", None)
    assert mark is not None
    return mark.line + 1, mark.column + 1


@pytest.mark.parametrize("name", DEEP_YAML)
def test_nesting_is_refused_at_the_place_where_it_is_too_deep(name: str) -> None:
    for read in (parse_yaml, check_yaml):
        with pytest.raises(YamlLimitError, match="nested deeper than 100 levels") as caught:
            read(DEEP_YAML[name])
        assert caught.value.limit is Limit.DEPTH
        assert place(caught.value) > (1, 1)


# Events do not follow aliases.
@pytest.mark.parametrize("name", [name for name in DEEP_YAML if name != "aliases"])
def test_events_are_refused_at_the_same_depth(name: str) -> None:
    with pytest.raises(YamlLimitError, match="nested deeper than 100 levels"):
        for _ in parse_events(DEEP_YAML[name]):
            pass


@pytest.mark.parametrize("name", FULL_YAML)
def test_what_would_take_for_ever_is_refused(name: str) -> None:
    with pytest.raises(YamlLimitError):
        parse_yaml(FULL_YAML[name])


def test_a_hundred_levels_are_read() -> None:
    text = "[" * 100 + "x" + "]" * 100
    assert parse_yaml(text) == yaml.safe_load(text)
    check_yaml(text)


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        ("a: [[[[[[1]]]]]]", "nested deeper than 5 levels", (1, 8)),
        ("a: [" + "1, " * 30 + "]", "more than 20 values", (1, 4)),
        ("a: &a [1, 2, 3, 4]\nb: [*a, *a, *a, *a]", "aliases expand to more than 20 values", (2, 4)),
        ("a: &a [1, *a]", "an alias leads back into its own anchor", (1, 4)),
        ("a: 1\nb: " + "7" * 1_000, "larger than 1000 characters", None),
    ],
)
def test_a_limit_says_which_it_is_and_where(text: str, problem: str, where: tuple[int, int] | None) -> None:
    with pytest.raises(YamlLimitError) as caught:
        parse_yaml(text, FEW)
    assert caught.value.problem == problem
    assert where is None or place(caught.value) == where


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1, !!bool x]", (1, 8)),
        ('a: !!int ""', (1, 4)),
        ("a: 1\nb: 2001-99-99", (2, 4)),
        ("a: !!timestamp x", (1, 4)),
        ("a: 1" + ":1" * 300 + ".5", (1, 4)),
    ],
)
def test_a_value_that_pyyaml_fails_on_is_an_error_with_its_place(text: str, where: tuple[int, int]) -> None:
    with pytest.raises(YamlValueError) as caught:
        parse_yaml(text)
    assert place(caught.value) == where


@pytest.mark.parametrize("source", ["a: \ud800", b"\xff\xfe", "a: \x01"])
def test_what_is_not_text_is_an_error_of_yaml(source: str | bytes) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(source)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}",
        "a: &x {b: 1}\ny: &y {c: 2, b: 3}\nd: {<<: [*x, *y], e: 2}",
        "!!set {a, b}",
        "!!omap [a: 1, b: 2]",
        "!!binary aGFsbG8=",
        "=: 1",
        "0x1f: 0o17\n1:30: 1_000\n1.5: .inf",
        "2026-01-31: 2026-01-31T10:00:00Z",
        "yes: no",
        "%TAG ! tag:yaml.org,2002:\n--- !str 1",
        "a: |\n  %TAG\n  %TAG\n",
    ],
)
def test_the_values_are_those_of_pyyaml(text: str) -> None:
    assert parse_yaml(text) == yaml.safe_load(text)
    assert parse_yaml(text.encode()) == yaml.safe_load(text)


def test_a_text_with_many_lines_that_look_like_directives_is_read() -> None:
    text = "a: |\n" + "  %TAG !x! y\n" * 500
    assert parse_yaml(text) == yaml.safe_load(text)


# Pieces that mean something to a reader, so that what is put together from them does too.
_PIECES = (
    *"[]{},:-?&*!|>'\"%#@`~=\n\t ",
    *("a", "b: ", "- ", "? ", ": ", "<<: ", "*a", "&a ", "*b", "&b ", "\n", "\n  ", "\n    ", "---\n"),
    *("...\n", "!!int ", "!!str ", "!!set ", "!!omap ", "!!pairs ", "!!binary ", "!!bool ", "!!float "),
    *("!!timestamp ", "!!map ", "!!seq ", "!!null ", "!x ", "%TAG ! x:\n", "%YAML 1.1\n", "1", "1:1", "0x"),
    *(
        "0b1",
        "1e3",
        ".5",
        ".inf",
        ".nan",
        "2001-01-01",
        "2001-13-41",
        "yes",
        "null",
        "\ufeff",
        "\u2028",
        "\x85",
    ),
)
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=60).map("".join) | st.text(max_size=200)


def outcome(text: str) -> tuple[bool, object]:
    """Return whether PyYAML reads a text, and what it makes of it; in Python, which does not crash."""
    try:
        return True, repr(yaml.load(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError):
        return False, None
    except RecursionError:
        return False, None


@settings(max_examples=400, deadline=None)
@given(_TEXTS)
@example("&a [*a]")
@example("? [a, b]\n: 1")
@example("a: !!pairs [b: &c [*c]]")
def test_any_text_is_read_as_pyyaml_reads_it_or_is_an_error_with_a_place(text: str) -> None:
    is_sound, expected = outcome(text)
    try:
        value = parse_yaml(text, DocumentLimits(size=10_000, depth=30, values=500))
    except YamlLimitError:
        return
    except yaml.YAMLError:
        assert not is_sound
        return
    assert is_sound
    assert repr(value) == expected


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_a_check_never_lets_through_what_the_reader_refuses_for_its_limits(text: str) -> None:
    few = DocumentLimits(size=10_000, depth=4, values=30)
    try:
        check_yaml(text, few)
    except yaml.YAMLError:
        return
    try:
        parse_yaml(text, few)
    except YamlLimitError as err:
        assert err.limit is Limit.NUMBER  # noqa: PT017 - the one that needs the value
    except yaml.YAMLError:
        return


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=100, deadline=None)
@given(_VALUES, st.booleans())
def test_what_pyyaml_writes_is_read_back(value: object, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    try:
        expected = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    assert parse_yaml(text) == expected


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_are_an_error_of_yaml(data: bytes) -> None:
    try:
        parse_yaml(data)
    except yaml.YAMLError:
        return
