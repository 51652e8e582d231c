"""The syntax tree of a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from stackyard.base.documents.hcltree import end_line_of, line_of, parse_tree

LINE = 77


def test_lines_count_from_one() -> None:
    [body] = parse_tree(b"\n" * (LINE - 1) + b"a = {\n  b = 1\n}\n").named_children
    assert (line_of(body), end_line_of(body)) == (LINE, LINE + 2)


def test_asking_for_a_line_takes_no_reference_from_a_number() -> None:
    # A number that loses a reference each time is freed while others use it, and the process dies later.
    [body] = parse_tree(b"\n" * LINE + b"a = 1\n").named_children
    before = sys.getrefcount(LINE)
    for _ in range(1000):
        line_of(body)
        end_line_of(body)
    assert abs(sys.getrefcount(LINE) - before) < 100


def test_nothing_else_reads_the_points_of_a_tree() -> None:
    points = re.compile(r"\.(start|end)_point\b")
    source = Path(__file__).parents[4] / "src"
    assert [path.name for path in source.rglob("*.py") if points.search(path.read_text())] == ["hcltree.py"]
