"""Reading the object: JSON that means one thing, or an error with its place."""

from __future__ import annotations

import pytest

from stackyard.sources.deployment.text import EmptyObjectError, ObjectSyntaxError, parse, same, strip_comments


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t\r\n ", "\0\0\0", "\ufeff", "{}", " { } ", "null", '{"_a": 1}']
)
def test_an_object_that_holds_nothing_is_never_an_input(text: str) -> None:
    with pytest.raises(EmptyObjectError):
        parse(text.encode(), "o")


@pytest.mark.parametrize("text", ["[]", "[1]", '"x"', "1", "true", '[{"containers": {}}]'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ObjectSyntaxError, match="has to be an object"):
        parse(text.encode(), "o")


def test_an_object_that_was_cut_off_is_refused_with_line_and_column() -> None:
    whole = '{\n  "containers": {\n    "web": {"vm_id": 100}\n  }\n}\n'
    for length in range(1, len(whole) - 2):
        with pytest.raises(ObjectSyntaxError) as caught:
            parse(whole[:length].encode(), "o")
        where = caught.value.where
        assert where is not None
        assert where.line is not None
        assert where.column is not None
    assert "cut off" in str(caught.value)


def test_a_key_that_is_there_twice_is_refused_with_both_lines() -> None:
    text = '{\n  "a": {\n    "web": 1,\n    "x": [{"web": 2}],\n    "web": 3\n  }\n}'
    with pytest.raises(ObjectSyntaxError, match="'web' twice: in line 3 and in line 5") as caught:
        parse(text.encode(), "o")
    assert (caught.value.where and (caught.value.where.line, caught.value.where.column)) == (5, 5)


def test_a_key_twice_is_found_however_it_is_spelt() -> None:
    with pytest.raises(ObjectSyntaxError, match="twice"):
        parse(b'{"ab": 1, "\\u0061b": 2}', "o")


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', '{"a": 1e999}'])
def test_numbers_that_json_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(ObjectSyntaxError):
        parse(text.encode(), "o")


def test_nesting_without_end_is_refused() -> None:
    for depth in (70, 100_000):
        with pytest.raises(ObjectSyntaxError):
            parse(('{"a":' * depth + "1" + "}" * depth).encode(), "o")
    assert parse(('{"a":' * 40 + "1" + "}" * 40).encode(), "o").data


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ObjectSyntaxError, match="UTF-8"):
        parse(b'{"a": "\xff"}', "o")


def test_a_place_is_that_of_the_key_or_of_the_nearest_thing_around() -> None:
    document = parse(b'{\n "a": {\n  "b": [1,\n   {"c": "x"}\n  ]\n }\n}', "o")
    assert str(document.place(("a",))) == "o:2:2"
    assert str(document.place(("a", "b"))) == "o:3:3"
    assert str(document.place(("a", "b", 1, "c"))) == "o:4:5"
    assert str(document.place(("a", "b", 1, "missing", "too"))) == "o:4:4"
    assert str(document.place(())) == "o:1:1"


def test_a_byte_order_mark_is_not_part_of_the_object() -> None:
    assert parse(b'\xef\xbb\xbf{"a": 1}', "o").data == {"a": 1}


def test_comments_are_taken_out_at_any_depth() -> None:
    assert strip_comments({"_a": 1, "b": {"_c": 2, "d": [{"_e": 3, "f": 4}]}}) == {"b": {"d": [{"f": 4}]}}


def test_true_is_not_one_and_the_order_of_keys_is_nothing() -> None:
    assert not same({"a": True}, {"a": 1})
    assert not same([1], [1.0])
    assert same({"a": 1, "b": [2]}, {"b": [2], "a": 1})
