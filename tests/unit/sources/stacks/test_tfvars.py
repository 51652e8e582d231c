"""Variables files: their values, their lines, and what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base.documents.hcltext import write_hcl
from stackyard.sources.stacks.tfvars import NOT_CONSTANT, Tfvars, TfvarsError, read_tfvars

TEXT = b"""# the machines
vms = {
  web = { cores = 2, tags = ["a", "b"], on = true } // a comment
  "db one" : { cores = 4.5
    note = null /* another
    one */ }
}

name = "say \\"hi\\"\\n\\u00e9 $${kept} %%{kept} $5"
offset=-3
key = <<-EOT
    first
      second
    EOT
raw = <<EOT
  $${kept}
EOT
listed = [
  1,
  <<X
inside
X
  , { deep = [[], {}] },
]
"""


def read(text: str | bytes, name: str = "vms.tfvars") -> Tfvars:
    return read_tfvars(text.encode() if isinstance(text, str) else text, name)


def values(text: str | bytes, name: str = "vms.tfvars") -> dict[str, Any]:
    return {name: one.value for name, one in read(text, name).variables.items()}


def test_values_are_read_with_their_lines() -> None:
    assert values(TEXT) == {
        "vms": {
            "web": {"cores": 2, "tags": ["a", "b"], "on": True},
            "db one": {"cores": 4.5, "note": None},
        },
        "name": 'say "hi"\né ${kept} %{kept} $5',
        "offset": -3,
        "key": "first\n  second\n",
        "raw": "  ${kept}\n",
        "listed": [1, "inside\n", {"deep": [[], {}]}],
    }
    lines = {name: one.where.line for name, one in read(TEXT).variables.items()}
    assert lines == {"vms": 2, "name": 9, "offset": 10, "key": 11, "raw": 15, "listed": 18}


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2",
        'upper("s3cret-text")',
        '"${upper("s3cret-text")}-${"}"}"',
        '[for one in ["s3cret-text"] : one]',
        '{ for one in ["s3cret-text"] : one => one }',
        'true ? "s3cret-text" : {\n  a = "}"\n}',
        "(\n1\n)",
        "<<X\n${1}\nX",
        '{ (1) = "s3cret-text", "${2}" = 1 }',
    ],
)
def test_what_only_the_engine_can_compute_is_passed_over(expression: str) -> None:
    found = read(f"before = 1\na = {expression}\nafter = 2\n")
    assert {name: one.value for name, one in found.variables.items()} == {
        "before": 1,
        "a": NOT_CONSTANT,
        "after": 2,
    }
    if "s3cret" in expression:
        assert any("s3cret-text" in text for text in found.strings)


def test_every_text_is_known_to_the_redactor_and_short_numbers_are_not() -> None:
    found = read('a = { key = "value", list = ["one", 22, 12345678] }\nb = true\nc = "a\\nb"\n')
    assert found.strings == {"value", "one", "12345678", "a\nb"}
    assert read('{"a": {"key": ["value", 22, 12345678, true, null]}}', "a.tfvars.json").strings == {
        "value",
        "12345678",
    }
    assert "value" not in repr(found)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('a = 1\nb = "s3cret\n', 2, "A string has no end"),
        ('a = "${"s3cret"\n', 1, "A string has no end"),
        ("a = \n", 1, "A value is missing"),
        ("a = [1,\n 2\n", 1, "A bracket is not closed"),
        ("a = [1,\n 2}\n", 2, "A comma is missing"),
        ("a = { b }", 1, "A key has no value"),
        ("a = { = 1 }", 1, "A key is missing"),
        ("a = 1 b = 2", 1, "A comma or a new line is missing"),
        ('a = { b = "s3cret" c = 2 }', 1, "A comma or a new line is missing"),
        ("a = 1, 2", 1, "Something follows"),
        ("\n\nblock {\n}\n", 3, "NAME = VALUE"),
        ('"a" = 1\n', 1, "NAME = VALUE"),
        ('{"a": "s3cret"}', 1, "NAME = VALUE"),
        ("a = <<X\ns3cret\n", 1, "has no end"),
        ('a = "s3cret\\q"', 1, "escape"),
        ('a = "\\ud800"', 1, "escape"),
        ("a = 1\nb = (2]\n", 2, "closes another"),
        ("\ufeffa = 1\n", 1, "byte order mark"),
        (b'a = 1\nb = "\xff"\n', 2, "UTF-8"),
        ("a = " + "[" * 600, 1, "deeper than 500"),
        ("a = " + "{x=" * 600, 1, "deeper than 500"),
    ],
)
def test_text_that_is_not_valid_is_placed_and_never_quoted(
    text: str | bytes, line: int, problem: str
) -> None:
    with pytest.raises(TfvarsError) as caught:
        read(text)
    assert caught.value.where is not None
    assert caught.value.where.line == line
    assert problem in caught.value.detail
    assert "s3cret" not in str(caught.value)


def test_everything_that_is_set_twice_is_named_with_both_lines() -> None:
    text = 'a = 1\nb = {\n  x = 1\n  "x" = 2\n  y = { z = 1, z = 2 }\n}\na = 2\n'
    with pytest.raises(TfvarsError) as caught:
        read(text)
    found = [
        (one.also[0].line, one.where.line, one.detail.split("`")[1])
        for one in caught.value.diagnostics
        if one.where is not None
    ]
    assert found == [(3, 4, "x"), (5, 5, "z"), (1, 7, "a")]


def test_a_key_that_is_twice_in_json_is_refused() -> None:
    with pytest.raises(TfvarsError, match=r"line 2 and in line 3") as caught:
        read('{\n"a": "s3cret",\n"a": 2}', "a.tfvars.json")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ['{"a": 11111111111111111111111', '{"a": 999999999999999999999999999}', "[1]"]
)
def test_json_that_is_not_valid_is_not_quoted(text: str) -> None:
    with pytest.raises(TfvarsError) as caught:
        read(text, "a.tfvars.json")
    assert "1111" not in str(caught.value)
    assert "9999" not in str(caught.value)


def test_a_comment_of_json_is_no_variable() -> None:
    assert values('{"//": "note", "a": 1}', "a.tfvars.json") == {"a": 1}
    assert values("{}", "a.tfvars.json") == {}
    assert values("# nothing\n") == {}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True), JSON, max_size=4))
def test_whatever_is_written_is_read_again(data: dict[str, Any]) -> None:
    text = "".join(f"{name} = {write_hcl(value)}\n" for name, value in data.items())
    assert values(text) == data
    assert values(json.dumps(data), "a.tfvars.json") == data


PIECES = [
    '"',
    "${",
    "%{",
    "}",
    "{",
    "[",
    "]",
    "(",
    ")",
    "=",
    ",",
    "\n",
    "a",
    "1",
    "<<X\n",
    "\nX\n",
    "\\",
    "#",
    "/*",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join))
def test_no_text_ends_in_anything_but_values_or_an_error_with_a_line(text: str) -> None:
    for start in ("", "a = "):
        where = None
        try:
            read_tfvars((start + text).encode(errors="replace"), "x.tfvars")
        except TfvarsError as err:
            where = err.where
            assert where is not None
        assert where is None or where.line is not None
