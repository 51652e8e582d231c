"""What OPA answers: read exactly, and refused whenever it is anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.guard import Allowances, Finding, Permit, Verdict
from stackyard.guard.policy.rules import RuleFile, RuleSet
from stackyard.guard.policy.verdict import read_answer, read_errors

FILE = Path("policy/tags.rego")
RULES = RuleSet(files=(RuleFile(path=FILE, data=b"", package="stackyard.tags"),))
COPIES = {"0000.rego": FILE}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def answer(value: Any) -> str:
    return json.dumps({"result": [{"expressions": [{"value": value, "text": "x"}]}]})


def read(deny: Any = (), warn: Any = ()) -> tuple[Finding, ...]:
    return read_answer(answer({"stackyard.tags": {"deny": deny, "warn": warn}}), RULES, COPIES)


def test_texts_and_objects_refuse_and_warn() -> None:
    entry = {"msg": "no owner", "address": "aws_instance.x", "name": "owner", "permit": "no-owner"}
    found = read(deny=[["plain", entry]], warn=[["take care"]])
    assert [one.kind.code for one in found] == ["E-POLICY-DENIED", "E-POLICY-DENIED", "W-POLICY-WARNED"]
    assert [one.detail for one in found] == [
        "stackyard.tags.deny: plain",
        "owner: aws_instance.x: no owner",
        "stackyard.tags.warn: take care",
    ]
    assert [one.permit for one in found] == [None, Permit(option="--allow-policy", name="no-owner"), None]
    assert found[1].label == "aws_instance.x"


def test_only_a_rule_that_gives_a_permit_is_permitted_by_it() -> None:
    found = read(deny=[["plain", {"msg": "a", "permit": "late"}]])
    allowed = Allowances(permits=frozenset((Permit(option="--allow-policy", name="late"),)))
    verdict = Verdict.sort(found, allowed)
    assert [one.detail for one in verdict.refused] == ["stackyard.tags.deny: plain"]
    assert [one.detail for one in verdict.permitted] == ["stackyard.tags.deny: a"]
    other = Allowances(permits=frozenset((Permit(option="--allow-destroy", name="late"),)))
    assert len(Verdict.sort(found, other).refused) == 2


def test_rules_that_find_nothing_let_a_plan_through() -> None:
    assert read(deny=[[]]) == ()
    assert read(deny=[[]], warn=[[]]) == ()


def test_a_package_without_a_rule_that_judges_is_refused() -> None:
    (found,) = read()
    assert found.kind.code == "E-POLICY-RULES"
    assert "neither `deny` nor `warn`" in found.detail
    assert str(found.where) == str(FILE)


@pytest.mark.parametrize(
    "entry",
    [1, None, True, [], ["a"], {}, {"msg": 1}, {"msg": " "}, {"message": "x"}]
    + [{"msg": "x", "address": 1}, {"msg": "x", "name": []}, {"msg": "x", "permit": 1}]
    + [{"msg": "x", "permit": text} for text in ("", "a,b", "a b", "--all", "é")],
)
def test_a_message_of_another_form_is_refused_and_has_no_permit(entry: Any) -> None:
    (found,) = read(deny=[[entry]])
    assert (found.kind.code, found.permit) == ("E-POLICY-RULES", None)


@pytest.mark.parametrize("value", ["text", True, False, 1, {"a": 1}, None])
def test_a_rule_that_is_no_set_is_refused(value: Any) -> None:
    assert [one.kind.code for one in read(deny=[value])] == ["E-POLICY-RULES"]


def test_an_error_has_its_place_in_the_file_of_the_user() -> None:
    error = {
        "message": "unexpected }",
        "code": "rego_parse_error",
        "location": {"file": "rules/0000.rego", "row": 5, "col": 2},
    }
    (found,) = read_errors(json.dumps({"errors": [error]}), COPIES)
    assert (found.kind.code, str(found.where)) == ("E-POLICY-RULES", f"{FILE}:5:2")
    (running,) = read_errors(json.dumps({"errors": [{**error, "code": "eval_conflict_error"}]}), COPIES)
    assert running.kind.code == "E-POLICY-EVALUATION"


@pytest.mark.parametrize(
    "text",
    [
        *("", "garbage", "{}", "[]", "null", '{"result": []}', '{"result": {}}', answer({}), answer(None)),
        *(answer({"stackyard.other": {"deny": [[]]}}), answer({"stackyard.tags": 1}), "[" * 5000),
        *('{"errors": "x"}', '{"errors": [1]}', '{"errors": [], "result": []}'),
    ],
)
def test_an_answer_that_is_not_understood_refuses(text: str) -> None:
    found = read_answer(text, RULES, COPIES)
    assert found
    assert Verdict.sort(found, Allowances()).refused


@given(st.text(max_size=40) | VALUES.map(json.dumps))
def test_no_answer_that_is_not_a_judgement_lets_a_plan_through(text: str) -> None:
    assert Verdict.sort(read_answer(text, RULES, COPIES), Allowances()).refused


@given(VALUES, VALUES)
def test_only_sets_of_nothing_let_a_plan_through(deny: Any, warn: Any) -> None:
    refused = Verdict.sort(read(deny=deny, warn=warn), Allowances()).refused
    is_silent = deny in ([], [[]]) and (deny or warn) and isinstance(warn, list) and len(warn) <= 1
    assert refused or is_silent


@given(VALUES)
def test_each_entry_of_a_rule_refuses(entry: Any) -> None:
    (found,) = read(deny=[[entry]])
    assert found.kind.severity.value == "error"


@given(VALUES)
def test_errors_of_any_form_refuse(errors: Any) -> None:
    text = json.dumps({"errors": errors, "result": []})
    assert Verdict.sort(read_answer(text, RULES, COPIES), Allowances()).refused
