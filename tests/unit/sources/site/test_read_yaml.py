"""YAML is read with the place of everything, and everything wrong with it is a finding."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base.diagnostics import Diagnostic, Diagnostics
from stackyard.sources.site.document import Document, parse_document, read_document


def read(text: str) -> tuple[Document | None, list[Diagnostic]]:
    found = Diagnostics()
    return parse_document(text, "f.yaml", found), list(found)


def value_of(text: str) -> Any:
    document, found = read(f"a: {text}\n")
    assert not found, found
    assert document is not None
    return document.data["a"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1", 1),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1.0e+3", 1000.0),
        ("-.inf", float("-inf")),
        ("true", True),
        ("Yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        # What older YAML makes numbers and dates of, and nobody means so.
        ("0755", "0755"),
        ("52:54:00:12:34:56", "52:54:00:12:34:56"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("1_000", "1_000"),
        ("12e34", "12e34"),
        ("1" * 5000, "1" * 5000),
    ],
)
def test_a_value_means_what_its_writer_sees(written: str, meant: object) -> None:
    assert value_of(written) == meant
    assert type(value_of(written)) is type(meant)


def test_a_merge_key_takes_over_what_is_not_said() -> None:
    document, found = read("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nall: {<<: [*b, {z: 4}]}\n")
    assert not found
    assert document is not None
    assert document.data["use"] == {"x": 1, "y": 3}
    assert document.data["all"] == {"x": 1, "y": 2, "z": 4}
    assert str(document.place(("use", "x"))) == "f.yaml:1:14"


def test_a_key_with_an_underscore_is_a_comment() -> None:
    document, found = read("a: {_why: because, b: 1}\n_note: x\n")
    assert not found
    assert document is not None
    assert document.data == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("a: 1\nb: 2\na: 3\n", "E-YAML-DUPLICATE-KEY", "f.yaml:3:1"),
        ("x: {a: 1, 'a': 3}\n", "E-YAML-DUPLICATE-KEY", "f.yaml:1:11"),
        ("x: {<<: {a: 1}, <<: {b: 1}}\n", "E-YAML-DUPLICATE-KEY", "f.yaml:1:17"),
        ("a:\n\t- b\n", "E-YAML-SYNTAX", "f.yaml:2:1"),
        ("a: b: c\n", "E-YAML-SYNTAX", "f.yaml:1:5"),
        ("a: {b\n", "E-YAML-SYNTAX", "f.yaml:2:1"),
        ("a: *nobody\n", "E-YAML-SYNTAX", "f.yaml:1:4"),
        ("a: 1\n---\nb: 2\n", "E-YAML-SYNTAX", "f.yaml:2:1"),
        ("a: 1\nb: \x07\n", "E-YAML-SYNTAX", "f.yaml:2:4"),
        ("a: 'ü\x01'\n", "E-YAML-SYNTAX", "f.yaml:1:6"),
        ("1: a\n", "E-YAML-KEY", "f.yaml:1:1"),
        ("x:\n  yes: a\n", "E-YAML-KEY", "f.yaml:2:3"),
        ("? [a]\n: b\n", "E-YAML-KEY", "f.yaml:1:3"),
        ("a: !vault x\n", "E-YAML-TAG", "f.yaml:1:4"),
        ("a: !!python/object:os.system x\n", "E-YAML-TAG", "f.yaml:1:4"),
        ("a: !!set {b}\n", "E-YAML-TAG", "f.yaml:1:4"),
        ("a: !!int many\n", "E-YAML-TAG", "f.yaml:1:4"),
        ("a: {<<: 1}\n", "E-YAML-MERGE", "f.yaml:1:9"),
        ("a: &a [*a, *a]\n", "E-YAML-DEPTH", "f.yaml:1:4"),
        ("a: &a {<<: *a}\n", "E-YAML-DEPTH", "f.yaml:1:4"),
        ("", "E-YAML-EMPTY", "f.yaml:1:1"),
        ("# nothing\n\n", "E-YAML-EMPTY", "f.yaml:1:1"),
        ("null\n", "E-YAML-EMPTY", "f.yaml:1:1"),
        ("- a\n", "E-YAML-MAPPING", "f.yaml:1:1"),
        ("word\n", "E-YAML-MAPPING", "f.yaml:1:1"),
    ],
)
def test_what_is_wrong_is_found_at_its_place(text: str, code: str, where: str) -> None:
    _, found = read(text)
    assert [(one.kind.code, str(one.where)) for one in found] == [(code, where)]


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? "])
def test_nesting_without_end_is_refused_and_does_not_overrun_the_stack(opening: str) -> None:
    _, found = read(opening * 200_000)
    assert [one.kind.code for one in found] == ["E-YAML-DEPTH"]


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    began_s = time.monotonic()
    _, found = read("\n".join(lines))
    assert [one.kind.code for one in found] == ["E-YAML-SIZE"]
    assert time.monotonic() - began_s < 60


def test_a_tab_in_the_indentation_is_named() -> None:
    _, found = read("a:\n\tb: 1\n")
    assert "tab" in found[0].detail


def test_a_value_with_a_wrong_tag_is_not_quoted() -> None:
    _, found = read("token: !secret s3cret-value\n")
    assert "s3cret" not in found[0].detail


def test_a_file_that_is_not_utf8_is_found_at_its_place(tmp_path: Any) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: 1\nb: \xff\n")
    found = Diagnostics()
    assert read_document(tmp_path / "f.yaml", found) is None
    (one,) = found
    assert one.where is not None
    assert (one.kind.code, one.where.line, one.where.column) == ("E-YAML-FILE", 2, 4)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Any) -> None:
    (tmp_path / "f.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    found = Diagnostics()
    document = read_document(tmp_path / "f.yaml", found)
    assert document is not None
    assert document.data == {"a": 1}
    assert len(found) == 0


def test_windows_line_ends_change_no_place() -> None:
    document, _ = read("a: 1\r\nb:\r\n  c: 2\r\n")
    assert document is not None
    assert str(document.place(("b", "c"))) == "f.yaml:3:6"
    assert str(document.key_place(("b", "c"))) == "f.yaml:3:3"


def test_a_place_that_the_file_does_not_have_is_that_of_what_is_around_it() -> None:
    document, _ = read("a:\n  b: [1, 2]\n")
    assert document is not None
    assert str(document.place(("a", "b", 7, "x"))) == "f.yaml:2:6"
    assert str(document.place(("z",))) == "f.yaml:1:1"


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return  # No file holds it.
    document, found = read(text)
    assert document is not None or found
    assert all(one.where is not None and one.where.line is not None for one in found)


KEYS = st.text("abc xyz-", min_size=1, max_size=6).filter(lambda key: key.strip() == key and key[0] != "-")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
@settings(max_examples=200)
def test_what_a_yaml_writer_writes_is_read_as_it_was(data: dict[str, Any]) -> None:
    text = yaml.safe_dump(data)
    document, found = read(text)
    assert not found, (text, found)
    assert document is not None
    assert document.data == data
