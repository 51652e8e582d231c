"""`stackyard policy`: what its commands print, write and exit with."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import stackyard
from tests.support.policy import good_repository

PET = "modules/pet"
UNTYPED = 'variable "length" {\n  description = "x"\n}\n'


def test_a_clean_check_exits_with_zero_and_says_what_it_did_not_check(tmp_path: Path) -> None:
    ended = stackyard("policy", "check", cwd=good_repository(tmp_path))
    assert ended.status == 0
    assert "M12 was not checked" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "1 module and 1 stack: no findings."


def test_findings_are_grouped_by_rule_with_place_and_remedy(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED, f"{PET}/README.md": None})
    ended = stackyard("policy", "check", cwd=root)
    assert ended.status == 1
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("M")] == ["M4", "M5", "M7", "M12"]
    place = f"  {PET}/variables.tf:1: error: The variable `length` has no type."
    assert lines[lines.index(place) + 1] == "    Add `type`."
    assert lines[-1] == "1 module and 1 stack: 3 findings; exit status 1."
    # From another folder, places are as they would be typed there.
    assert "  variables.tf:1: error:" in stackyard("policy", "check", cwd=root / PET).stdout


def test_json_has_every_finding(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED})
    ended = stackyard("--json", "policy", "check", cwd=root)
    assert ended.status == 1
    assert ended.document["passed"] is False
    [finding] = ended.document["findings"]
    assert finding["rule"] == "M5"
    assert finding["where"] == {"file": f"{PET}/variables.tf", "line": 1}
    same = stackyard("policy", "check", "--format", "json", cwd=root)
    assert json.loads(same.stdout)["findings"] == [finding]


def test_rules_and_paths_narrow_the_check(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED})
    assert stackyard("policy", "check", "--rule", "M1,m2", cwd=root).status == 0
    assert stackyard("policy", "check", "onprem/a", cwd=root).status == 0
    assert stackyard("policy", "check", f"{PET}/", cwd=root).status == 1
    wrong = stackyard("policy", "check", "--rule", "M99", cwd=root)
    assert wrong.status == 64
    assert "M99" in wrong.stderr
    assert stackyard("policy", "check", "gone", cwd=root).status == 64


def test_sarif_goes_to_a_file(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED})
    ended = stackyard("policy", "check", "--format", "sarif", "--output", "policy.sarif", cwd=root)
    assert ended.status == 1
    assert "1 finding" in ended.stdout
    document = json.loads((root / "policy.sarif").read_text())
    assert document["runs"][0]["results"][0]["ruleId"] == "M5"


def test_input_that_is_not_valid_exits_with_65(tmp_path: Path) -> None:
    root = good_repository(tmp_path / "a", {"stackyard.yaml": "exceptions: [{rule: M4}]\n"})
    ended = stackyard("policy", "check", cwd=root)
    assert ended.status == 65
    assert "stackyard.yaml:1" in ended.stderr
    empty = tmp_path / "empty"
    (empty / ".git").mkdir(parents=True)
    assert stackyard("policy", "check", cwd=empty).status == 65
    base = stackyard("policy", "check", "--base", "gone", cwd=good_repository(tmp_path / "b"))
    assert base.status == 65


def test_fix_shows_first_and_then_writes(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/README.md": None})
    dry = stackyard("policy", "fix", "--dry-run", cwd=root)
    assert dry.status == 0
    assert "+| `length` | How many words the name has. | `number` |  | yes |" in dry.stdout
    assert not (root / PET / "README.md").exists()
    done = stackyard("policy", "fix", cwd=root)
    assert f"created {PET}/README.md: tables of inputs and outputs" in done.stdout
    assert stackyard("policy", "check", cwd=root).status == 0
    assert "nothing to write" in stackyard("policy", "fix", cwd=root).stdout
