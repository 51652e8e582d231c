"""The page that compares stackyard with the systems before it: counted, closed, and its commands exist."""

from __future__ import annotations

import collections
import re
from pathlib import Path

from stackyard.cli.error_codes import read_catalogue

PATH = Path(__file__).parents[2] / "docs" / "reference" / "compatibility.md"
PAGE = PATH.read_text()
STATUSES = ("works", "differs", "not yet")
HEADER = "| claim | status | in stackyard |"


def rows() -> list[tuple[str, list[str]]]:
    """Return every row with the system that it is about."""
    found, system = [], ""
    lines = PAGE.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("## "):
            system = line.removeprefix("## ")
        if line == HEADER:
            for row in lines[number + 2 :]:
                if not row.startswith("|"):
                    break
                cells = re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))
                found.append((system, [cell.strip() for cell in cells]))
    return found


def test_every_row_has_a_claim_a_known_status_and_a_reason_where_it_differs() -> None:
    assert [row for _, row in rows() if len(row) != 3 or not row[0] or row[1] not in STATUSES] == []
    assert [row for _, row in rows() if row[1] != "not yet" and len(row[2]) < 8] == []


def test_no_claim_is_listed_twice_in_a_section() -> None:
    assert [
        claim
        for claim, count in collections.Counter((system, row[0]) for system, row in rows()).items()
        if count > 1
    ] == []


def test_the_counts_at_the_top_are_those_of_the_rows() -> None:
    counted = collections.Counter((system, row[1]) for system, row in rows())
    listed = re.findall(r"^\| \[(.+?)\]\(#\S+\) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    systems = dict.fromkeys(system for system, _ in rows())
    assert [row[0] for row in listed] == list(systems)
    for system, *numbers in listed:
        assert numbers == [str(counted[system, status]) for status in STATUSES], system
    total = [sum(counted[system, status] for system in systems) for status in STATUSES]
    assert f"Totals: {total[0]} work, {total[1]} differ, {total[2]} not yet." in PAGE


def test_every_link_leads_to_a_heading() -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", PAGE)
    assert links
    for target, anchor in links:
        text = (PATH.parent / target).read_text() if target else PAGE
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs, (target, anchor)


def test_every_error_code_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([EW]-[A-Z-]+)`", PAGE))
    assert named
    assert named <= read_catalogue().keys()
