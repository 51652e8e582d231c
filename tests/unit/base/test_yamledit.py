"""Values of YAML files are changed by their keys, and not one other line is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base.yamledit import (
    Append,
    Change,
    Remove,
    Set,
    UnfaithfulEditError,
    YamlEditError,
    edit_file,
    edit_text,
    lay_out,
)

SITE = """\
# The site
defaults:
  timezone: UTC   # not local
  packages: [htop, 'curl']
  nothing: null
  tilde: ~
  list:
    - one   # first
    - "two"

# About tokens
api_tokens:
  # the first node
  pve1: "root@pam!x=1"

  pve2: 'y'
nodes:
- a
- b: 1
  c: [ 1,2 ]
last: |
  text
    more
# The end
"""


def edit(text: str, *changes: Change) -> str:
    return edit_text(text, changes, "f.yaml")


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ([Set(("defaults", "timezone"), "CET")], "timezone: UTC   #", "timezone: CET   #"),
        ([Set(("defaults", "nothing"), 5)], "  nothing: null\n", "  nothing: 5\n"),
        ([Set(("api_tokens", "pve1"), "z")], 'pve1: "root@pam!x=1"\n', 'pve1: "z"\n'),
        ([Set(("api_tokens", "pve3"), "z")], "  pve2: 'y'\n", "  pve2: 'y'\n  pve3: z\n"),
        (
            [Set(("defaults", "new"), "v")],
            '    - "two"\n',
            '    - "two"\n  new: v\n',
        ),
        ([Append(("defaults", "list"), "three")], '    - "two"\n', '    - "two"\n    - three\n'),
        ([Append(("nodes",), "c")], "  c: [ 1,2 ]\n", "  c: [ 1,2 ]\n- c\n"),
        ([Remove(("defaults", "tilde"))], "  tilde: ~\n", ""),
        ([Set(("nodes", 1, "b"), 2)], "- b: 1\n", "- b: 2\n"),
    ],
    ids=range(9),
)
def test_an_edit_changes_its_lines_and_no_other(changes: list[Change], old: str, new: str) -> None:
    assert old in SITE
    assert edit(SITE, *changes) == SITE.replace(old, new)


def test_keys_that_are_missing_are_made() -> None:
    edited = edit("a: 1\n", Set(("b", "c", "d"), "x"), Append(("e",), 1))
    assert edited == "a: 1\nb:\n  c:\n    d: x\ne:\n  - 1\n"


@pytest.mark.parametrize("text", ["", "# only comments\n", "---\n"])
def test_an_empty_file_is_filled(text: str) -> None:
    assert (
        edit(text, Set(("a",), 1))
        == ("" if text == "---\n" else text) + ("---\n" if text == "---\n" else "") + "a: 1\n"
    )


@pytest.mark.parametrize(
    "change", [Set(("defaults", "timezone"), "UTC"), Append(("nodes",), "a"), Remove(("missing", "key"))]
)
def test_an_edit_that_changes_nothing_gives_the_same_text(change: Change) -> None:
    assert edit(SITE, change) == SITE


def test_windows_line_ends_stay() -> None:
    assert edit("a: 1\r\nb: 2\r\n", Set(("a",), 3)) == "a: 3\r\nb: 2\r\n"
    with pytest.raises(UnfaithfulEditError):
        edit("a: 1\r\nb: 2\n", Set(("a",), 3))


def test_a_file_without_a_last_line_end_stays_one() -> None:
    assert edit("a: 1\nb: 2", Set(("a",), 3)) == "a: 3\nb: 2"


def test_a_key_that_looks_like_another_is_not_confused() -> None:
    text = "ssh_keys:\n  pve1: key\napi_tokens: {}\n"
    assert edit(text, Set(("api_tokens", "pve1"), "t")) == "ssh_keys:\n  pve1: key\napi_tokens:\n  pve1: t\n"


def test_a_value_that_looks_like_something_else_is_quoted() -> None:
    assert edit("a: 1\n", Set(("b",), "yes"), Set(("c",), "5"), Set(("d",), "x: y")) == (
        "a: 1\nb: \"yes\"\nc: '5'\nd: 'x: y'\n"
    )


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("a: [1\n", Set(("a",), 1)),
        ("a: 1\na: 2\n", Set(("a",), 1)),
        ("- 1\n", Set(("a",), 1)),
        ("a: 1\n---\nb: 2\n", Set(("a",), 1)),
        ("a: text\n", Set(("a", "b"), 1)),
        ("a: [1]\n", Set(("a", 5), 1)),
        ("a: {}\n", Append(("a",), 1)),
        ("a: 1\n", Set((), 1)),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(text: str, change: Change) -> None:
    with pytest.raises((YamlEditError, UnfaithfulEditError)):
        edit(text, change)


def test_a_file_is_replaced_with_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    path.chmod(0o644)
    assert edit_file(path, [Set(("defaults", "timezone"), "CET")])
    assert not edit_file(path, [Set(("defaults", "timezone"), "CET")])
    assert "CET   # not local" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o644


TEXTS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=12)


@settings(max_examples=8)
@given(TEXTS)
def test_any_text_can_be_set_and_read_back(value: str) -> None:
    edited = edit(SITE, Set(("api_tokens", "pve9"), value))
    assert edit(edited, Set(("api_tokens", "pve9"), value)) == edited
    assert edit(edited, Remove(("api_tokens", "pve9"))) == SITE


@given(st.text("ab:-[]{}#\n '\"|>&*! ", max_size=25))
def test_whatever_a_file_holds_an_edit_works_or_is_refused(text: str) -> None:
    try:
        edited = edit(text, Set(("new",), "value"))
    except (YamlEditError, UnfaithfulEditError):
        return
    assert "new: value" in edited


def test_a_new_mapping_is_laid_out_as_people_write_it() -> None:
    entry = lay_out(
        {
            "name": "web",
            "tags": ["a", "yes"],
            "cpu": {"type": "host"},
            "text": "ä: one\n\n# two\n",
            "odd": " one\ntwo",
            "disks": [{"size": 1}, {"speed": {"read": 2}}],
        }
    )
    text = edit_text("vms:\n  - {name: a}  # the first\n", [Append(("vms",), entry)], "x")
    assert (
        text
        == """\
vms:
  - {name: a}  # the first
  - name: web
    tags: [a, "yes"]
    cpu: {type: host}
    text: |
      ä: one

      # two
    odd: " one\\ntwo"
    disks:
      - {size: 1}
      - speed: {read: 2}
"""
    )


def test_a_list_can_take_the_place_of_an_empty_one() -> None:
    text = edit_text("a: {}\nvms: []\n", [Set(("vms",), [{"name": "x"}])], "x")
    assert text == "a: {}\nvms:\n  - name: x\n"
