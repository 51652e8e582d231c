"""A saved plan as values: actions, differences, and no secret in any of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.engine.changes import SENSITIVE, UNKNOWN, Action, read_changes
from stackyard.engine.version import EngineBrokenError


def entry(actions: list[str], before: Any, after: Any, **change: Any) -> dict[str, Any]:
    return {
        "address": "proxmox_virtual_environment_vm.web",
        "mode": "managed",
        "type": "proxmox_virtual_environment_vm",
        "name": "web",
        "change": {"actions": actions, "before": before, "after": after, **change},
    }


def plan(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"resource_changes": list(entries)}


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (["no-op"], Action.NOTHING),
        (["create"], Action.CREATE),
        (["update"], Action.UPDATE),
        (["delete"], Action.DELETE),
        (["delete", "create"], Action.REPLACE),
        (["create", "delete"], Action.REPLACE),
        (["forget"], Action.FORGET),
    ],
)
def test_each_way_a_resource_can_change_is_one_word(actions: list[str], action: Action) -> None:
    changes = read_changes(plan(entry(actions, {}, {})))
    assert changes.planned[0].action is action
    assert changes.is_empty is (action is Action.NOTHING)


def test_a_resource_that_is_only_moved_or_imported_is_a_change() -> None:
    same = {"vm_id": 100}
    moved = read_changes(plan({**entry(["no-op"], same, same), "previous_address": "vm.old"}))
    assert moved.planned[0].action is Action.NOTHING
    assert moved.planned[0].moved_from == "vm.old"
    assert not moved.planned[0].is_nothing
    assert not moved.is_empty
    imported = read_changes(plan(entry(["no-op"], same, same, importing={"id": "pve1/100"})))
    assert imported.planned[0].action is Action.NOTHING
    assert imported.planned[0].imported_as == "pve1/100"
    assert not imported.planned[0].is_nothing
    assert not imported.is_empty
    assert read_changes(plan(entry(["no-op"], same, same))).is_empty


def test_only_what_differs_is_a_difference() -> None:
    before = {"name": "web", "disk": [{"size": 8, "ssd": True}], "tags": ["a"]}
    after = {"name": "web", "disk": [{"size": 9, "ssd": True}], "tags": ["a", "b"]}
    change = read_changes(plan(entry(["update"], before, after))).planned[0]
    assert [(d.name, d.before, d.after) for d in change.differences] == [
        ("disk[0].size", 8, 9),
        ("tags[1]", None, "b"),
    ]


def test_secrets_are_masked_and_their_change_is_still_seen() -> None:
    before = {"initialization": [{"user_account": [{"password": "old-secret"}]}], "notes": {"x": "s3cret"}}
    after = {"initialization": [{"user_account": [{"password": "new-secret"}]}], "notes": {"x": "s3cret"}}
    masks = {"initialization": [{"user_account": [{"password": True}]}], "notes": True}
    found = entry(["update"], before, after, before_sensitive=masks, after_sensitive=masks)
    change = read_changes(plan(found)).planned[0]
    assert "secret" not in repr(change)
    assert "s3cret" not in repr(change)
    assert [(d.name, d.before, d.after) for d in change.differences] == [
        ("initialization[0].user_account[0].password", SENSITIVE, SENSITIVE)
    ]


def test_what_is_known_after_apply_is_marked() -> None:
    found = entry(["update"], {"a": 1, "b": [1]}, {"b": [1]}, after_unknown={"a": True, "b": [False, True]})
    change = read_changes(plan(found)).planned[0]
    assert change.after == {"a": UNKNOWN, "b": [1, UNKNOWN]}
    assert {d.name: d.after for d in change.differences} == {"a": UNKNOWN, "b[1]": UNKNOWN}


def test_the_attribute_that_forces_a_replacement_is_named() -> None:
    found = entry(
        ["delete", "create"],
        {"node_name": "a", "x": 1},
        {"node_name": "b", "x": 2},
        replace_paths=[["node_name"]],
    )
    change = read_changes(plan(found)).planned[0]
    assert {d.name: d.forces_replace for d in change.differences} == {"node_name": True, "x": False}


def test_data_sources_are_no_changes() -> None:
    found = entry(["read"], None, {})
    found["mode"] = "data"
    assert read_changes(plan(found)).planned == ()


@pytest.mark.parametrize(
    "document",
    [
        {"resource_changes": [{}]},
        {"resource_changes": [None]},
        plan(entry(["explode"], None, None)),
        {"resource_changes": 3},
    ],
)
def test_an_unknown_form_is_an_error_of_the_engine(document: dict[str, Any]) -> None:
    with pytest.raises(EngineBrokenError):
        read_changes(document)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_the_same_values_have_no_difference(values: dict[str, Any]) -> None:
    assert read_changes(plan(entry(["update"], values, values))).planned[0].differences == ()


SCALARS = st.dictionaries(st.sampled_from("abc"), st.text(max_size=3))


@given(SCALARS, SCALARS)
def test_a_difference_is_found_exactly_where_values_differ(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = read_changes(plan(entry(["update"], {"x": [before]}, {"x": [after]}))).planned[0].differences
    expected = {f"x[0].{key}" for key in {*before, *after} if before.get(key) != after.get(key)}
    assert {difference.name for difference in found} == expected
