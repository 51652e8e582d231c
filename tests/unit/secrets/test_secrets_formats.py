"""Files are read with the place of every value, and single values are written so that they are read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.secrets.formats.dotenv_layout import parse_dotenv
from stackyard.secrets.formats.json_layout import parse_json
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.formats.yaml_scalar import yaml_flow, yaml_scalar
from stackyard.secrets.layout import Layout, SecretsSyntaxError, Splice, apply_splices, leaves, plain_data
from stackyard.secrets.values import Scalar, Timestamp, to_python


def values(layout: Layout) -> dict[tuple[str | int, ...], Scalar]:
    return {keys: leaf.value for keys, leaf in leaves(layout.documents[0].root)}


def test_every_value_of_yaml_knows_its_place() -> None:
    text = "a: 1 # one\nb:\n  - x\n  - {c: 'd'}\n"
    layout = parse_yaml(text, "f")
    found = {
        keys: (leaf.place.line, leaf.place.column, text[leaf.start : leaf.end])
        for keys, leaf in leaves(layout.documents[0].root)
    }
    assert found == {("a",): (1, 4, "1"), ("b", 0): (3, 5, "x"), ("b", 1, "c"): (4, 9, "'d'")}


def test_places_hold_in_a_file_with_windows_line_ends_and_other_scripts() -> None:
    text = "ключ: 世界\r\nb: |\r\n  x\r\n\r\nc: 🔑\r\n"
    found = [
        (leaf.place.line, text[leaf.start : leaf.end])
        for _, leaf in leaves(parse_yaml(text, "f").documents[0].root)
    ]
    assert found == [(1, "世界"), (2, "|\r\n  x"), (5, "🔑")]


def test_every_comment_is_found_and_no_other_hash() -> None:
    text = '# top\na: "no # comment" # yes\nb: x#y\nc: | # header\n  # text\nd: [1, # in\n  2]\n'
    layout = parse_yaml(text, "f")
    found = [text[r.start : r.end] for e in layout.documents[0].root.entries for r in e.remarks]
    assert found == ["# top", "# yes", "# header"]
    (listing,) = [e.node for e in layout.documents[0].root.entries if e.key == "d"]
    assert "# in" in text[listing.start : listing.end]


def test_several_documents_are_read_apart() -> None:
    layout = parse_yaml("a: 1\n---\nb: 2\n", "f")
    assert [plain_data(document.root) for document in layout.documents] == [{"a": 1}, {"b": 2}]


def test_merge_keys_and_aliases_mean_what_they_mean_in_yaml() -> None:
    layout = parse_yaml("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nagain: *b\n", "f")
    assert plain_data(layout.documents[0].root) == {
        "base": {"x": 1, "y": 2},
        "more": {"x": 1, "y": 3},
        "again": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", 2),
        ("a: [1\n", 2),
        ("- a\n", 1),
        ("just text\n", 1),
        ("a: 1\n1: b\n", 2),
        ("a:\n  ? [x]\n  : y\n", 2),
        ("a: *nowhere\n", 1),
        ("a: \x00\n", 1),
        ("a: !!int x\n", 1),
        ("x: " + "[" * 150 + "]" * 150, 1),
    ],
)
def test_yaml_that_cannot_be_a_secrets_file_is_refused_with_its_place(text: str, line: int) -> None:
    with pytest.raises(SecretsSyntaxError) as caught:
        parse_yaml(text, "f.yaml")
    assert caught.value.where is not None
    assert (caught.value.where.path, caught.value.where.line) == ("f.yaml", line)


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(SecretsSyntaxError, match="repeat too much"):
        parse_yaml("\n".join(lines), "f")


def test_json_is_read_with_places_and_large_numbers() -> None:
    layout = parse_json('{\n "a": "\\u00fc",\n "b": [1, {"c": 1.5}], "d": 18446744073709551616}', "f")
    assert values(layout) == {("a",): "ü", ("b", 0): 1, ("b", 1, "c"): 1.5, ("d",): 18446744073709551616.0}
    first = next(leaf for _, leaf in leaves(layout.documents[0].root))
    assert (first.place.line, first.place.column) == (2, 7)


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"a": 1', '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, '"x"']
)
def test_json_that_cannot_be_a_secrets_file_is_refused(text: str) -> None:
    with pytest.raises(SecretsSyntaxError):
        parse_json(text, "f.json")


def test_dotenv_is_read_line_by_line() -> None:
    assert values(parse_dotenv("# c\nA=1=2\n\nB=x\\ny\nC=\n", "f")) == {
        ("A",): "1=2",
        ("B",): "x\ny",
        ("C",): "",
    }


def test_a_line_of_dotenv_without_a_value_is_refused_with_its_place() -> None:
    with pytest.raises(SecretsSyntaxError) as caught:
        parse_dotenv("A=1\nexport\n", "f.env")
    assert str(caught.value.where) == "f.env:2:1"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
    st.binary(max_size=10).filter(lambda data: not _is_text(data)),
    st.sampled_from(
        ["yes", "1:30", "0x1", "- a", "a: b", "#x", "null", "~", " x", "x ", "\ta", "a\nb", "\n", "  a\nb\n"]
    ),
    st.just(Timestamp("2020-01-02T03:04:05.6+01:00")),
)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(SCALARS, st.booleans())
def test_a_value_that_is_written_as_yaml_is_read_back(value: Scalar, is_flow: bool) -> None:
    written = yaml_scalar(value, indent=2, is_flow=is_flow)
    text = f"a:\n  k: [{written}, 1]\n" if is_flow else f"a:\n  k: {written}\n  next: 1\n"
    keys = ("a", "k", 0) if is_flow else ("a", "k")
    assert values(parse_yaml(text, "f"))[keys] == value


@given(
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
        ),
    )
)
def test_a_collection_that_is_written_on_one_line_is_read_back(value: object) -> None:
    layout = parse_yaml(f"k: {yaml_flow(value)}\n", "f")
    assert repr(plain_data(layout.documents[0].root)) == repr({"k": _python(value)})


def _python(value: object) -> object:
    if isinstance(value, dict):
        return {key: _python(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_python(inner) for inner in value]
    return to_python(value) if isinstance(value, Timestamp) else value


def test_text_is_changed_only_where_it_is_spliced() -> None:
    assert apply_splices("abcdef", [Splice(4, 5, "E"), Splice(0, 1, "A"), Splice(2, 2, "-")]) == "Ab-cdEf"
    with pytest.raises(ValueError, match="overlap"):
        apply_splices("abc", [Splice(0, 2, ""), Splice(1, 3, "")])


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.text(max_size=5) | st.integers(-5, 5) | st.booleans() | st.none(),
        max_size=4,
    )
)
def test_json_means_what_it_means_to_any_other_program(document: dict[str, object]) -> None:
    text = json.dumps(document, indent=1)
    assert plain_data(parse_json(text, "f").documents[0].root) == document
