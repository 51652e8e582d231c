"""An error of a lab in the background is the same error here."""

from __future__ import annotations

import orjson
import pytest

from pvelab import SeedError
from stackyard.base.diagnostics import Diagnostic, Kind, describe
from stackyard.base.errors import BusyError, FileError, InvalidInputError, Location, StackyardError
from stackyard.base.serving import AddressInUseError
from stackyard.cli.commands.lab.relay import parse_error


def printed(error: StackyardError) -> str:
    return orjson.dumps({"error": describe(error)}).decode()


FINDING = Diagnostic(kind=Kind(code="E-X", summary="s", remedy="r"), detail="d", where=Location("file", 1, 2))


@pytest.mark.parametrize(
    "error",
    [
        AddressInUseError("Cannot listen on 127.0.0.1:1."),
        BusyError("held", remedy="wait"),
        FileError("gone", where=Location("x")),
        InvalidInputError("wrong", (FINDING,)),
        SeedError("bad seed", (FINDING, FINDING), where=Location("s.json", 3)),
    ],
)
def test_an_error_arrives_as_it_was(error: StackyardError) -> None:
    again = parse_error(f"some line before\n{printed(error)}\n")
    assert type(again) is type(error)
    assert again is not None
    assert describe(again) == describe(error)


def test_an_unknown_code_keeps_its_words_and_its_exit_status() -> None:
    text = printed(BusyError("held")).replace("E-BUSY", "E-NEVER-HEARD-OF")
    again = parse_error(text)
    assert isinstance(again, BusyError)
    assert again.detail == "held"


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"error": {}}', '{"error": "text"}', "[1]"])
def test_what_is_no_error_is_none(text: str) -> None:
    assert parse_error(text) is None
