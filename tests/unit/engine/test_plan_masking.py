"""A plan without its secrets: what the engine marks is masked, wherever the plan shows it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.base.redaction import Redactor
from stackyard.engine.plan_masking import mask_plan

SECRET = "hunter2-secret"
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet="abc", max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)


def change(**values: Any) -> dict[str, Any]:
    return {"resource_changes": [{"address": "a.b", "change": {"actions": ["update"], **values}}]}


def changed(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = mask_plan(document)["resource_changes"][0]["change"]
    return found


def test_marked_attributes_are_masked_and_others_are_not() -> None:
    value = {"password": SECRET, "name": "web", "list": [SECRET, "b"], "none": None}
    marks = {"password": True, "list": [True, False], "none": True}
    found = changed(change(before=value, before_sensitive=marks, after=value, after_sensitive=marks))
    expected = {"password": "(sensitive)", "name": "web", "list": ["(sensitive)", "b"], "none": None}
    assert (found["before"], found["after"]) == (expected, expected)
    assert found["after_sensitive"] == marks


@pytest.mark.parametrize(
    ("value", "marks"), [([SECRET], {"0": True}), ({"a": SECRET}, [True]), (SECRET, {"a": True})]
)
def test_marks_that_do_not_fit_mask_the_whole_value(value: Any, marks: Any) -> None:
    found = changed(change(before=None, after={"x": value}, after_sensitive={"x": marks}))
    assert found["after"] == {"x": "(sensitive)"}


def test_a_variable_that_no_one_declares_is_taken_for_a_secret() -> None:
    document = {
        "variables": {"open": {"value": "a"}, "odd": {"value": SECRET}, "closed": {"value": [SECRET]}},
        "configuration": {"root_module": {"variables": {"open": {}, "closed": {"sensitive": True}}}},
    }
    assert mask_plan(document)["variables"] == {
        "open": {"value": "a"},
        "odd": {"value": "(sensitive)"},
        "closed": {"value": "(sensitive)"},
    }


def test_a_secret_is_masked_as_a_literal_of_the_code_too() -> None:
    document = {
        **change(before=None, after={"p": SECRET}, after_sensitive={"p": True}),
        "configuration": {
            "root_module": {"resources": [{"expressions": {"p": {"constant_value": f"x{SECRET}x"}}}]}
        },
    }
    assert SECRET not in json.dumps(mask_plan(document))


def test_a_common_word_that_is_secret_in_one_place_is_kept_where_the_engine_shows_it() -> None:
    found = changed(
        change(before=None, after={"env": "production", "p": "production"}, after_sensitive={"p": True})
    )
    assert found["after"] == {"env": "production", "p": "(sensitive)"}


def test_what_else_is_secret_is_masked_everywhere() -> None:
    document = change(before=None, after={"note": f"it is {SECRET}"}, after_sensitive={})
    assert SECRET not in json.dumps(mask_plan(document, Redactor([SECRET])))


@given(st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3))
def test_without_marks_nothing_changes(value: dict[str, Any]) -> None:
    document = change(before=value, before_sensitive={}, after=value, after_sensitive=False)
    assert mask_plan(document) == document


@given(VALUES, VALUES)
def test_marks_of_any_form_raise_nothing(value: Any, marks: Any) -> None:
    changed(change(before=value, before_sensitive=marks, after=None, after_sensitive=marks))


@given(VALUES)
def test_any_document_is_taken(value: Any) -> None:
    mask_plan({"planned_values": value, "variables": value, "configuration": value, "other": value})
