"""Exceptions are accepted until their day, never silently, and only where they are complete."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.support.policy import check, good_repository, rules_of

from stackyard.base.errors import InvalidInputError
from stackyard.policy.model import Level

PET = "modules/pet"


def excepted(path: str, until: str = "2027-01-31", rule: str = "M4") -> str:
    return f"exceptions:\n  - rule: {rule}\n    path: {path}\n    reason: it goes away\n    until: {until}\n"


@pytest.mark.parametrize("path", [PET, "modules/*", "modules", "**/pet", "modules/"])
def test_an_exception_covers_a_folder_and_what_is_in_it(tmp_path: Path, path: str) -> None:
    root = good_repository(tmp_path, {f"{PET}/README.md": None, "stackyard.yaml": excepted(f'"{path}"')})
    result = check(root, "M4")
    assert result.findings == ()
    [one] = result.excepted
    assert (one.finding.rule, one.exception.reason, one.exception.until) == (
        "M4",
        "it goes away",
        "2027-01-31",
    )


def test_an_exception_covers_only_its_rule_and_place(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/README.md": None, "stackyard.yaml": excepted(PET)})
    assert rules_of(check(root)) == {"M7"}
    other = good_repository(
        tmp_path / "b", {f"{PET}/README.md": None, "stackyard.yaml": excepted("modules/p")}
    )
    assert rules_of(check(other, "M4")) == {"M4"}


def test_an_exception_counts_on_its_last_day_and_not_on_the_next(tmp_path: Path) -> None:
    files = {f"{PET}/README.md": None, "stackyard.yaml": excepted(PET, "2026-11-18")}
    root = good_repository(tmp_path, files)
    assert check(root, "M4", today=datetime.date(2026, 11, 18)).errors == ()
    result = check(root, "M4", today=datetime.date(2026, 11, 19))
    assert rules_of(result) == {"M4"}
    [said] = [one for one in result.findings if one.level is Level.WARNING]
    assert str(said.where).startswith("stackyard.yaml:2")
    assert "ended on 2026-11-18" in said.detail


def test_an_unused_exception_is_a_note(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {"stackyard.yaml": excepted(PET)})
    [note] = check(root).findings
    assert (note.level, note.where.path) == (Level.NOTE, "stackyard.yaml")
    assert check(root, "M5").findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "exceptions:\n  - {rule: M4, path: x, reason: y}\n",
        "exceptions:\n  - {rule: M4, path: x, until: 2027-01-31}\n",
        'exceptions:\n  - {rule: M4, path: x, reason: " ", until: 2027-01-31}\n',
        "exceptions:\n  - {rule: M4, path: x, reason: y, until: 2027-02-31}\n",
        "exceptions:\n  - {rule: M4, path: x, reason: y, until: soon}\n",
        "exceptions:\n  - {rule: M13, path: x, reason: y, until: 2027-01-31}\n",
        "exceptions:\n  - {rule: M4, path: x, reason: y, until: 2027-01-31, who: me}\n",
        "exceptions: {}\n",
    ],
)
def test_an_exception_that_is_not_complete_is_refused(tmp_path: Path, text: str) -> None:
    root = good_repository(tmp_path, {"stackyard.yaml": text})
    with pytest.raises(InvalidInputError):
        check(root)
