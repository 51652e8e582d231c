"""Findings as SARIF 2.1.0: rules with help, places from the top, fingerprints that outlive moved lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.policy import MODULE, check, good_repository
from tests.support.stacks import write

from stackyard.policy.sarif import make_sarif

PET = "modules/pet"
UNTYPED = 'variable "length" {\n  description = "x"\n}\n'
EXCEPTION = "exceptions:\n  - {rule: M3, path: modules, reason: later, until: 2027-01-31}\n"


def run_of(root: Path) -> dict[str, Any]:
    document = make_sarif(check(root))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    [run] = document["runs"]
    return dict(run)


def test_a_result_has_its_rule_place_and_words(tmp_path: Path) -> None:
    run = run_of(good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED}))
    driver = run["tool"]["driver"]
    assert driver["name"] == "stackyard"
    assert [one["id"] for one in driver["rules"]] == [f"M{number}" for number in range(13)]
    assert all(one["help"]["text"] and one["shortDescription"]["text"] for one in driver["rules"])
    [result] = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "M5"
    assert result["level"] == "error"
    assert "no type" in result["message"]["text"]
    [location] = result["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{PET}/variables.tf"
    assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
    assert place["region"] == {"startLine": 1}


def test_a_rule_that_was_not_checked_is_said(tmp_path: Path) -> None:
    [invocation] = run_of(good_repository(tmp_path))["invocations"]
    [notice] = invocation["toolExecutionNotifications"]
    assert "M12 was not checked" in notice["message"]["text"]


def test_a_fingerprint_stays_when_lines_move(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/variables.tf": UNTYPED})
    [before] = run_of(root)["results"]
    write(root, {f"{PET}/variables.tf": f"\n\n# moved\n{UNTYPED}"})
    [after] = run_of(root)["results"]
    assert before["locations"] != after["locations"]
    assert before["partialFingerprints"] == after["partialFingerprints"]


def test_equal_findings_of_a_file_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    text = 'module "x" {\n  source = "git::ssh://h/x"\n}\n'
    results = run_of(good_repository(tmp_path, {f"{PET}/x.tf": text * 2}))["results"]
    assert len({str(one["partialFingerprints"]) for one in results}) == len(results) == 2


def test_an_exception_is_a_suppression_with_its_reason(tmp_path: Path) -> None:
    exact = str(MODULE["main.tf"]).replace("~> 3.6", "3.6.2")
    root = good_repository(tmp_path, {f"{PET}/main.tf": exact, "stackyard.yaml": EXCEPTION})
    [result] = run_of(root)["results"]
    [suppression] = result["suppressions"]
    assert suppression == {
        "kind": "external",
        "status": "accepted",
        "justification": "later (until 2027-01-31)",
    }


def test_odd_names_become_addresses(tmp_path: Path) -> None:
    [result] = run_of(good_repository(tmp_path, {"a b/é%.tfstate": "{}"}))["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "a%20b/%C3%A9%25.tfstate"
