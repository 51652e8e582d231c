"""Programs of others that judge our work: each can be named, found or is missed by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.judges import JUDGES, Judge, find_judge, note_programs
from tests.support.programs import write_program

from stackyard.cli.commands.tools import INSTALLABLE_TOOLS

ROOT = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)


@EACH
def test_without_the_program_a_test_is_skipped_and_says_how_to_get_it(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(judge.variable, raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"no {judge.name} to test with.*{judge.variable}"):
        find_judge(judge.name)


def test_a_program_that_is_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKYARD_TEST_SOPS", str(tmp_path / "sops"))
    with pytest.raises(AssertionError, match=r"STACKYARD_TEST_SOPS is .*, which is not a file"):
        find_judge("sops")


def test_a_named_program_comes_before_the_managed_copy_and_that_before_path(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that what the search notes is taken back.
    for judge in JUDGES.values():
        monkeypatch.setenv(judge.variable, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    places = [write_program(tmp_path / "sops", "exit 0")]
    places.append(write_program(home / ".cache/stackyard/tools/sops/3.13.3/sops", "exit 0"))
    places.append(write_program(tmp_path / "named", "exit 0"))
    monkeypatch.setenv("STACKYARD_TEST_SOPS", str(places[2]))
    for place in reversed(places):
        note_programs()
        assert find_judge("sops") == place
        monkeypatch.setenv("STACKYARD_TEST_SOPS", "")
        place.unlink()


def test_make_installs_judges_that_can_be_installed() -> None:
    listed = re.search(r"^JUDGES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed is not None
    assert set(listed[1].split()) == set(JUDGES) & set(INSTALLABLE_TOOLS)


@EACH
def test_the_variable_of_each_is_documented(judge: Judge) -> None:
    assert f"`{judge.variable}`" in (ROOT / "CONTRIBUTING.md").read_text()
