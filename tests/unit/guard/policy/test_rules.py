"""The folders of rules: what is read, and what refuses a plan before OPA starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.guard.policy.rules import read_rules

DENY = "package stackyard.tags\n\ndeny contains msg if { msg := input.target }\n"


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def problems(folder: Path) -> list[str]:
    found = read_rules([folder]).problems
    assert {finding.kind.code for finding in found} <= {"E-POLICY-RULES"}
    assert all(finding.permit is None for finding in found)
    return [f"{finding.where}: {finding.detail}" for finding in found]


def test_rules_data_and_what_they_share_are_read_and_tests_are_not(tmp_path: Path) -> None:
    folder = write(tmp_path, a__rego=DENY, data__json="{}", README__md="no rule")
    write(tmp_path / "lib", b__rego="# shared\npackage lib.names\n", more__yaml="a: 1\n")
    write(tmp_path / ".git", c__rego="package stackyard.hidden\n")
    (tmp_path / "a_test.rego").write_text("package stackyard.tags_test\n")
    rules = read_rules([folder])
    assert rules.problems == ()
    names = [str(one.path.relative_to(tmp_path)) for one in rules.files]
    assert sorted(names) == ["a.rego", "data.json", "lib/b.rego", "lib/more.yaml"]
    assert rules.packages == ("stackyard.tags",)


@pytest.mark.parametrize(
    "text",
    [
        "package stackyard",
        "\n# why\n\npackage stackyard # rules\n",
        "package\tstackyard\r\ndeny contains 1\n",
    ],
)
def test_a_package_is_found_behind_comments(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.rego").write_bytes(text.encode())
    assert read_rules([tmp_path]).packages == ("stackyard",)


@pytest.mark.parametrize(
    "text", ["", "# only a comment", "deny contains 1", 'package a["b c"]', "packages x"]
)
def test_a_file_without_a_plain_package_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.rego").write_text(text)
    (problem,) = problems(tmp_path)
    assert problem.startswith(f"{tmp_path}/a.rego:1: ")


def test_an_empty_folder_or_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (empty,) = problems(write(tmp_path / "empty", README__md="x"))
    assert "no file with rules" in empty
    (missing,) = problems(tmp_path / "missing")
    assert f"{tmp_path}/missing: There is no such folder" in missing


def test_one_empty_folder_beside_a_good_one_is_refused_too(tmp_path: Path) -> None:
    good, empty = write(tmp_path / "good", a__rego=DENY), write(tmp_path / "empty")
    assert len(read_rules([good, empty]).problems) == 1


def test_rules_in_other_packages_alone_judge_nothing_and_are_refused(tmp_path: Path) -> None:
    write(tmp_path, a__rego="package main\n", b__rego="package stackyardish\n")
    (problem,) = problems(tmp_path)
    assert "nothing would be judged" in problem


def test_links_lead_nowhere(tmp_path: Path) -> None:
    folder = write(tmp_path / "rules", a__rego=DENY)
    write(tmp_path / "outside", b__rego=DENY)
    (folder / "b.rego").symlink_to(tmp_path / "outside" / "b.rego")
    (folder / "more").symlink_to(tmp_path / "outside")
    found = problems(folder)
    assert len(found) == 2
    assert {one.partition(":")[0] for one in found} == {f"{folder}/b.rego", f"{folder}/more"}


def test_a_file_beyond_all_measure_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.rego").open("wb") as stream:
        stream.truncate(5 * 2**20)
    (problem,) = problems(tmp_path)
    assert "larger than" in problem
