"""Text for humans: nothing in it steers a terminal, and a table loses no word."""

from __future__ import annotations

import io

import pytest

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import InvalidInputError, Location, StackyardError
from stackyard.cli.views.failure import write_failure
from stackyard.cli.views.text_writer import TextWriter, printable

WRONG = Kind(code="E-WRONG", summary="Wrong", remedy="Correct it.")
ODD = Kind(code="W-ODD", summary="Odd", remedy="Look at it.", severity=Severity.WARNING)


def written(error: StackyardError, *, colour: bool = False) -> str:
    stream = io.StringIO()
    write_failure(TextWriter(stream, colour=colour), error)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u20ac\ttext\n", "plain \u20ac\ttext\n"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x00c\x7fd\x9be", "a\\x0db\\x00c\\x7fd\\x9be"),
        (b"caf\xe9".decode(errors="surrogateescape"), "caf\\xe9"),
    ],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_and_cells_from_outside_are_printable_and_colours_of_ours_are_not_lost() -> None:
    stream = io.StringIO()
    writer = TextWriter(stream, colour=True)
    writer.line("\x1b[2J", style="red")
    writer.table(("name",), [("\x1b[2J",)])
    assert stream.getvalue() == "\x1b[31m\\x1b[2J\x1b[0m\nname\n\\x1b[2J\n"


def test_columns_are_aligned_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    TextWriter(stream, colour=False).table(("tool", "where"), [("tofu", "-"), ("ansible", "/usr/bin")])
    assert stream.getvalue() == "tool     where\ntofu     -\nansible  /usr/bin\n"


def test_an_error_shows_what_where_every_finding_and_what_to_do() -> None:
    found = Diagnostics()
    found.add(WRONG, "`nodes` is a word.\nIt must be a list.", Location("site.yaml", 3, 5))
    found.add(ODD, "`nods` is not known.", Location("site.yaml", 4))
    with pytest.raises(InvalidInputError) as caught:
        found.raise_errors("The site")
    assert written(caught.value).splitlines() == [
        "Error: The input is not valid [E-INVALID]",
        "  The site has 1 problem.",
        "  - site.yaml:3:5: Wrong [E-WRONG]",
        "      `nodes` is a word.",
        "      It must be a list.",
        "      Correct it.",
        "  - site.yaml:4: Odd [W-ODD]",
        "      `nods` is not known.",
        "      Look at it.",
        "  Correct every place listed and run the command again; nothing was changed.",
    ]


def test_an_error_shows_its_own_place() -> None:
    error = StackyardError("It broke.", where=Location("main.tf", 7), remedy="Mend it.")
    assert written(error).splitlines() == [
        "Error: The command failed [E-FAILED]",
        "  at main.tf:7",
        "  It broke.",
        "  Mend it.",
    ]


def test_an_error_is_coloured_only_where_colours_are_wanted() -> None:
    assert "\x1b[31m" in written(StackyardError("It broke."), colour=True)
    assert "\x1b" not in written(StackyardError("It broke."))
