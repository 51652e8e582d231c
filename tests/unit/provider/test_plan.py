"""Plans: what the two ways of writing a provider make of a configuration and what was there."""

from __future__ import annotations

from typing import Any

from tests.support.provider_bench import proposed

from stackyard.provider.checks import one_of
from stackyard.provider.plan import PlanDraft, plan_change
from stackyard.provider.schema import UNSET, Rule, Schema, read_schema
from stackyard.provider.validate import check_block
from stackyard.provider.values import UNKNOWN, Object

FACTS: dict[str, Any] = {
    "version": 0,
    "block": {
        "attributes": {
            "id": {"type": "string", "computed": True},
            "name": {"type": "string", "required": True, "replace": True},
            "note": {"type": "string", "optional": True},
            "size": {"type": "number", "optional": True, "default": 8},
            "guess": {"type": "string", "optional": True, "computed": True},
        },
        "blocks": {
            "disk": {
                "nesting": "list",
                "block": {
                    "attributes": {
                        "path": {"type": "string", "optional": True, "computed": True},
                        "file": {"type": "string", "optional": True, "replace": True},
                        "cache": {"type": "string", "optional": True, "default": "none"},
                    }
                },
            }
        },
    },
}


def schema(*, sdk: bool, **rules: Rule) -> Schema:
    return read_schema({**FACTS, "sdk": sdk}, {name.replace("__", "."): rule for name, rule in rules.items()})


def planned(it: Schema, config: Object, prior: Object | None = None) -> PlanDraft:
    whole = it.block.complete(config)
    before = None if prior is None else it.block.complete(prior)
    return plan_change(it, whole, before, proposed(it.block, whole, before))


def test_a_new_object_gets_defaults_and_what_is_computed_is_unknown() -> None:
    plan = planned(schema(sdk=True), {"name": "a", "disk": [{"file": "f"}]})
    assert plan.values == {
        "id": UNKNOWN,
        "name": "a",
        "note": None,
        "size": 8,
        "guess": UNKNOWN,
        "disk": [{"path": UNKNOWN, "file": "f", "cache": "none"}],
    }
    assert plan.replace == []


def test_for_the_older_sdk_nothing_and_zero_are_the_same() -> None:
    prior = {"id": "1", "name": "a", "note": "", "size": 8, "guess": "g", "disk": []}
    assert planned(schema(sdk=True), {"name": "a"}, prior).values == prior
    nothing = {**prior, "note": None}
    assert planned(schema(sdk=True), {"name": "a", "note": ""}, nothing).values == nothing


def test_for_the_framework_nothing_and_zero_differ() -> None:
    prior = {"id": "1", "name": "a", "note": "", "size": 8, "guess": "g", "disk": []}
    assert planned(schema(sdk=False), {"name": "a"}, prior).values["note"] is None


def test_a_change_keeps_computed_values_of_the_sdk_and_forgets_those_of_the_framework() -> None:
    prior = {"id": "1", "name": "a", "note": "x", "size": 8, "guess": "g", "disk": []}
    config = {"name": "a", "note": "y"}
    assert planned(schema(sdk=True), config, prior).values["id"] == "1"
    plan = planned(schema(sdk=False, id=Rule(keep=True)), config, prior)
    assert (plan.values["id"], plan.values["guess"]) == ("1", UNKNOWN)


def test_without_a_change_nothing_is_forgotten() -> None:
    prior = {"id": "1", "name": "a", "note": "x", "size": 8, "guess": "g", "disk": []}
    assert planned(schema(sdk=False), {"name": "a", "note": "x"}, prior).values == prior


def test_the_attributes_that_need_another_object_are_named_by_their_place() -> None:
    disk = {"path": "p", "file": "f", "cache": "none"}
    prior = {"id": "1", "name": "a", "note": None, "size": 8, "guess": "g", "disk": [disk, disk]}
    config = {"name": "b", "disk": [{"file": "f"}, {"file": "other"}]}
    assert planned(schema(sdk=True), config, prior).replace == [("name",), ("disk", 1, "file")]


def test_an_unknown_value_may_be_another_one() -> None:
    prior: Object = {"id": "1", "name": "a", "note": None, "size": 8, "guess": "g", "disk": []}
    assert planned(schema(sdk=True), {"name": UNKNOWN}, prior).replace == [("name",)]
    assert planned(schema(sdk=True), {"name": "a", "disk": UNKNOWN}, prior).values["disk"] is UNKNOWN


def test_values_that_mean_the_same_stay_as_they_are() -> None:
    same = Rule(same=lambda old, new: str(old).lower() == str(new).lower())
    prior = {"id": "1", "name": "a", "note": "LOUD", "size": 8, "guess": "g", "disk": []}
    assert planned(schema(sdk=True, note=same), {"name": "a", "note": "loud"}, prior).values == prior


def test_rules_of_ours_are_laid_over_those_of_the_facts() -> None:
    name = schema(sdk=True, name=Rule(check=lambda _: None)).block.attributes["name"].rule
    assert (name.replace, name.default) == (True, UNSET)
    assert name.check is not None


def test_an_incomplete_value_is_made_whole_and_what_does_not_exist_is_dropped() -> None:
    whole = schema(sdk=True).block.complete({"name": "a", "gone": 1, "disk": [{"file": "f"}]})
    assert whole["disk"] == [{"path": None, "file": "f", "cache": None}]
    assert "gone" not in whole
    assert set(whole) == {"id", "name", "note", "size", "guess", "disk"}


NESTED: dict[str, Any] = {
    "version": 0,
    "block": {
        "attributes": {
            "secret_wo": {"type": "string", "optional": True, "write_only": True},
            "range": {
                "optional": True,
                "nested": {
                    "nesting": "single",
                    "attributes": {
                        "first": {"type": "string", "optional": True},
                        "found": {"type": "string", "computed": True},
                    },
                },
            },
            "maps": {
                "optional": True,
                "nested": {"nesting": "set", "attributes": {"node": {"type": "string", "required": True}}},
            },
        }
    },
}


def test_a_rule_reaches_into_an_object() -> None:
    it = read_schema(NESTED, {"range.first": Rule(replace=True)})
    plan = planned(it, {"range": {"first": "b"}}, {"range": {"first": "a", "found": "x"}})
    assert plan.replace == [("range", "first")]
    assert plan.values["range"] == {"first": "b", "found": UNKNOWN}


def test_what_is_write_only_is_in_no_plan() -> None:
    plan = planned(read_schema(NESTED, {}), {"secret_wo": "canary"})
    assert plan.values["secret_wo"] is None


def test_what_is_wrong_in_an_element_of_a_set_is_found() -> None:
    it = read_schema(NESTED, {"maps.node": Rule(check=one_of("pve1"))})
    (found,) = check_block(it.block, it.block.complete({"maps": [{"node": "pve1"}, {"node": "pve9"}]}))
    assert (found.path, found.detail) == (("maps",), "`maps.node` must be one of pve1.")
