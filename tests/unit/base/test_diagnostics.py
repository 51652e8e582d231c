"""Findings are collected and reported all at once, for people and as JSON."""

from __future__ import annotations

import json

import pytest

from stackyard.base.diagnostics import Diagnostic, Diagnostics, Kind, Severity, describe, place_document
from stackyard.base.errors import BusyError, ExitStatus, InvalidInputError, Location, StackyardError

DUPLICATE = Kind(code="E-TEST-DUPLICATE", summary="A name is used twice", remedy="Rename one of them.")
UNUSED = Kind(
    code="W-TEST-UNUSED",
    summary="A value is never used",
    remedy="Remove it.",
    severity=Severity.WARNING,
)


def found_both() -> Diagnostics:
    found = Diagnostics()
    found.add(UNUSED, "`size` is not used.", Location("a.yaml", 1))
    found.add(DUPLICATE, "`web` is there twice.", Location("a.yaml", 3, 5))
    found.add(DUPLICATE, "`db` is there twice.")
    return found


def test_a_finding_as_json_says_everything_it_knows() -> None:
    found = Diagnostic(kind=DUPLICATE, detail="`web` is there twice.", where=Location("a.yaml", 3, 5))
    assert found.document() == {
        "code": "E-TEST-DUPLICATE",
        "severity": "error",
        "summary": "A name is used twice",
        "detail": "`web` is there twice.",
        "where": {"file": "a.yaml", "line": 3, "column": 5},
        "remedy": "Rename one of them.",
    }


def test_a_finding_without_a_place_has_none_in_json() -> None:
    assert Diagnostic(kind=UNUSED, detail="x").document()["where"] is None
    assert place_document(None) is None
    assert place_document(Location("a")) == {"file": "a", "line": None, "column": None}


def test_all_findings_are_raised_at_once_in_the_order_they_were_found() -> None:
    with pytest.raises(InvalidInputError) as caught:
        found_both().raise_errors("The manifest n2-quick")
    err = caught.value
    assert err.detail == "The manifest n2-quick has 2 problems."
    assert [found.detail for found in err.diagnostics] == [
        "`size` is not used.",
        "`web` is there twice.",
        "`db` is there twice.",
    ]
    assert err.exit_status is ExitStatus.INVALID


def test_one_problem_is_not_many() -> None:
    found = Diagnostics()
    found.add(DUPLICATE, "`web` is there twice.")
    with pytest.raises(InvalidInputError, match=r"^The site has 1 problem\.$"):
        found.raise_errors("The site")


def test_warnings_alone_stop_nothing() -> None:
    found = Diagnostics()
    found.raise_errors("Nothing")
    found.add(UNUSED, "`size` is not used.")
    found.raise_errors("The site")
    assert (len(found), found.errors) == (1, ())
    assert [warning.kind for warning in found.warnings] == [UNUSED]


def test_findings_made_elsewhere_join_the_others() -> None:
    found = Diagnostics()
    found.extend(found_both())
    found.extend(found_both())
    assert (len(found), len(found.errors), len(found.warnings)) == (6, 4, 2)
    assert list(found)[:3] == list(found_both())


def test_two_collectors_share_nothing() -> None:
    first, second = Diagnostics(), Diagnostics()
    first.add(DUPLICATE, "x")
    assert len(second) == 0


def test_an_error_as_json_says_everything_it_knows() -> None:
    err = BusyError("The lock is held.", where=Location("state", 1), remedy="Wait.")
    assert describe(err) == {
        "code": "E-BUSY",
        "summary": "Another client holds the lock",
        "detail": "The lock is held.",
        "where": {"file": "state", "line": 1, "column": None},
        "remedy": "Wait.",
        "exit_status": 75,
        "diagnostics": [],
    }


def test_an_error_as_json_holds_every_finding_behind_it() -> None:
    with pytest.raises(InvalidInputError) as caught:
        found_both().raise_errors("The site")
    described = describe(caught.value)
    assert described["diagnostics"] == [found.document() for found in found_both()]
    assert [found["severity"] for found in described["diagnostics"]] == ["warning", "error", "error"]
    assert json.loads(json.dumps(described)) == described


def test_an_error_without_a_place_has_none_in_json() -> None:
    assert describe(StackyardError("No."))["where"] is None
