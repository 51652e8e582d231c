"""Error codes explain themselves: every one is known, and what is said of it is true."""

from __future__ import annotations

import io
import re
from pathlib import Path

import click
import pytest
from tests.support.cli import stackyard
from tests.support.command_lines import command_lines, find_unknown

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import InvalidInputError, StackyardError, UsageError
from stackyard.cli.commands.explain_error import explain_error
from stackyard.cli.error_codes import read_catalogue, read_explanations
from stackyard.cli.views.failure import write_failure
from stackyard.cli.views.text_writer import TextWriter
from stackyard.engine.failures import StateLockedError

DOCS = Path(__file__).parents[3] / "docs"
CATALOGUE, EXPLANATIONS = read_catalogue(), read_explanations()


def shown(error: StackyardError) -> str:
    stream = io.StringIO()
    write_failure(TextWriter(stream, colour=False), error)
    return stream.getvalue()


def test_every_code_is_explained_with_what_to_do() -> None:
    listed = stackyard("explain-error", "--json").document["codes"]
    assert [row["code"] for row in listed] == sorted(CATALOGUE)
    assert [code for code, one in CATALOGUE.items() if not one.summary] == []
    # What is thrown without a remedy of its class has one of its own each time.
    silent = [code for code, one in CATALOGUE.items() if not one.remedy]
    assert silent == ["E-FAILED"]


@pytest.mark.parametrize("typed", ["E-STATE-LOCKED", "e-state-locked", "state-locked", "[E-STATE-LOCKED]"])
def test_a_code_is_understood_as_people_type_it(typed: str) -> None:
    found = stackyard("explain-error", typed, "--json").document
    assert (found["code"], found["exit_status"], found["page"]) == (
        "E-STATE-LOCKED",
        75,
        "docs/howto/state.md",
    )
    assert found["explanation"] == EXPLANATIONS["E-STATE-LOCKED"].text


def test_a_code_that_is_none_gets_the_nearest() -> None:
    ended = stackyard("explain-error", "E-STATE-LOCKT", "--json")
    assert ended.status == 64
    assert "`E-STATE-LOCKED`" in ended.document["error"]["detail"]


@pytest.mark.parametrize(
    ("typed", "offered"), [("E-PLAN-ST", "E-PLAN-STALE"), ("plan-st", "plan-stALE"), ("w-tof", "w-tofU")]
)
def test_the_shell_completes_codes(typed: str, offered: str) -> None:
    (parameter,) = (one for one in explain_error.params if isinstance(one, click.Argument))
    items = parameter.shell_complete(click.Context(explain_error), typed)
    assert offered in [item.value for item in items]


def test_a_failure_points_to_more_only_where_there_is_more() -> None:
    assert shown(StateLockedError("It is.")).endswith("  More: stackyard explain-error E-STATE-LOCKED\n")
    assert "explain-error" not in shown(UsageError("No."))
    kinds = [
        Kind(code=code, summary="s", remedy="r") for code in ("E-YAML-TAG", "E-SITE-KEY", "E-SITE-TOKEN")
    ]
    found = InvalidInputError("Wrong.", tuple(Diagnostic(kind=kind, detail="d") for kind in kinds))
    assert re.findall("explain-error (.*)", shown(found)) == ["E-SITE-KEY"]


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_an_explanation_is_of_a_code_and_names_what_exists(code: str) -> None:
    more = EXPLANATIONS[code]
    assert code in CATALOGUE
    assert (DOCS / more.page).is_file()
    assert 2 <= len(re.findall(r"[.?](?: |$)", more.text)) <= 6, more.text
    assert [line for line in command_lines(more.text) if find_unknown(line)] == []


def test_a_remedy_names_commands_that_exist() -> None:
    lines = [line for one in CATALOGUE.values() for line in command_lines(one.remedy)]
    assert len(lines) > 30
    assert [line for line in lines if find_unknown(line)] == []
