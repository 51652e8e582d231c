"""Lines of a syntax tree."""

from __future__ import annotations

from stackyard.base.documents.hcltree import line_of, parse_tree


def test_lines_beyond_the_256th_are_right() -> None:
    root = parse_tree(b"\n" * 5000 + b'a = 1\nvariable "b" {\n  type = string\n}\n')
    (body,) = root.named_children
    assert [line_of(one) for one in body.named_children] == [5001, 5002]


def test_lines_are_right_however_often_they_are_asked_for() -> None:
    text = b"".join(b"name%d = %d\n" % (number, number) for number in range(3000))
    (body,) = parse_tree(text).named_children
    for _ in range(3):
        assert [line_of(one) for one in body.named_children] == list(range(1, 3001))
