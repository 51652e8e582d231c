"""The tree of errors: what an error carries, and which status it ends a command with."""

from __future__ import annotations

import errno

import pytest

from stackyard.base.errors import (
    BusyError,
    ExitStatus,
    FileError,
    InternalError,
    InterruptedRunError,
    InvalidInputError,
    Location,
    OutputClosedError,
    OutputFailedError,
    StackyardError,
    UnreachableError,
    UsageError,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StackyardError, 1),
        (UsageError, 64),
        (InvalidInputError, 65),
        (FileError, 65),
        (UnreachableError, 69),
        (BusyError, 75),
        (InterruptedRunError, 130),
        (OutputClosedError, 141),
        (OutputFailedError, 1),
        (InternalError, 1),
    ],
)
def test_each_branch_has_its_exit_status(error: type[StackyardError], status: int) -> None:
    assert error("What is wrong.").exit_status == status
    assert error.exit_status in ExitStatus


def test_an_error_says_what_is_wrong_where_and_what_to_do() -> None:
    where = Location("nodes.yaml", 3, 7)
    err = BusyError("The lock of env:dev is held.", where=where)
    assert (str(err), err.detail, err.where) == (
        "The lock of env:dev is held.",
        "The lock of env:dev is held.",
        where,
    )
    assert err.remedy == BusyError.default_remedy != ""
    assert err.diagnostics == ()


def test_an_instance_may_know_a_better_remedy_than_its_class() -> None:
    assert UsageError("No.", remedy="Say yes.").remedy == "Say yes."
    assert UsageError("No.", remedy="").remedy == ""


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (Location("a.yaml"), "a.yaml"),
        (Location("a.yaml", 3), "a.yaml:3"),
        (Location("a.yaml", 3, 9), "a.yaml:3:9"),
        # A column alone would read as a line.
        (Location("a.yaml", None, 9), "a.yaml"),
    ],
)
def test_a_place_is_shown_as_editors_take_it(where: Location, shown: str) -> None:
    assert str(where) == shown


def test_a_refusal_of_the_system_names_the_path_and_the_reason() -> None:
    err = FileError.from_os_error(PermissionError(errno.EACCES, "Permission denied"), "write", "state.json")
    assert err.detail == "Cannot write state.json: Permission denied."
    assert err.where == Location("state.json")
    assert FileError.from_os_error(OSError("odd"), "read", "x").detail == "Cannot read x: odd."
    assert FileError.from_os_error(ValueError("embedded null byte"), "read", "x").detail == (
        "Cannot read x: embedded null byte."
    )
