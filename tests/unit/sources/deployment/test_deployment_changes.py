"""Changing and comparing objects: by guest, by path, and three ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.deployment import CONTAINER, SMALL, WHOLE, edited

from stackyard.base.errors import UsageError
from stackyard.sources.deployment.difference import ChangeKind, compare
from stackyard.sources.deployment.edit import PatchError, apply_patch, format_object, parse_path, set_values
from stackyard.sources.deployment.merge import merge


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    return {str(change): change.kind.value for change in compare(before, after).changes}


def test_a_difference_is_told_by_guest_and_field() -> None:
    after = edited(SMALL, **{"containers__my-container__cpu_cores": 4, "containers__new": CONTAINER})
    assert changes(SMALL, after) == {"containers.my-container": "changed", "containers.new": "added"}
    field = compare(SMALL, after).changes[0].fields[0]
    assert (field.field, field.before, field.after) == ("cpu_cores", 2, 4)


def test_comments_and_order_make_no_difference_that_means_anything() -> None:
    other = edited(SMALL, _comment="changed")
    assert compare(SMALL, other).is_empty
    assert compare(SMALL, other).has_other_comments
    assert not compare(SMALL, edited(SMALL)).has_other_comments


def test_true_and_one_are_a_difference() -> None:
    after = edited(SMALL, **{"containers__my-container__protection": True})
    assert changes(after, edited(after, **{"containers__my-container__protection": 1})) != {}


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("containers", "dns-1"),
        ("vms", "vm-a"),
        ("nodes", "pve3"),
        ("pools", "apps"),
        ("node_storage", "pve2"),
        ("network_cidrs", "dns"),
        ("node_services", "agent"),
    ],
)
def test_an_entry_that_disappears_from_any_guarded_map_counts_as_lost(section: str, key: str) -> None:
    lost = compare(WHOLE, edited(WHOLE, **{f"{section}__{key}": None})).lost
    assert f"{section}.{key}" in [str(change) for change in lost]


def test_a_generated_guest_that_disappears_counts_as_lost() -> None:
    smaller = edited(WHOLE, openbao_cluster__placement={"pve1": [11]})
    assert [str(change) for change in compare(WHOLE, smaller).lost] == ["generated.openbao-812"]
    off = edited(WHOLE, openbao_cluster__enabled=False)
    assert len(compare(WHOLE, off).lost) == 2
    retired = edited(WHOLE, nodes__pve2__services_enabled=False)
    assert [str(change) for change in compare(WHOLE, retired).lost] == ["generated.agent-2"]


def test_a_whole_map_that_disappears_loses_each_of_its_entries() -> None:
    assert [str(one) for one in compare(WHOLE, edited(WHOLE, vms=None)).lost] == ["vms.vm-a"]


def test_another_key_with_the_same_id_is_a_rename() -> None:
    after = edited(SMALL, containers__better={**CONTAINER, "cpu_cores": 8})
    after["containers"].pop("my-container")
    found = compare(SMALL, after)
    assert [(c.kind, c.key, c.new_key) for c in found.changes] == [
        (ChangeKind.RENAMED, "my-container", "better")
    ]
    assert found.lost == ()
    assert [one.field for one in found.changes[0].fields] == ["cpu_cores"]


def test_another_key_with_another_id_is_a_loss() -> None:
    after = edited(SMALL, containers__better={**CONTAINER, "vm_id": 999})
    after["containers"].pop("my-container")
    assert [str(one) for one in compare(SMALL, after).lost] == ["containers.my-container"]


def test_values_are_set_by_path_as_json_or_as_text() -> None:
    made = set_values(
        SMALL,
        [
            "containers.my-container.cpu_cores=4",
            "containers.my-container.description=hello = world",
            "containers.new.vm_id=200",
            "containers.my-container.tags.0=other",
            'pools.apps={"comment": "x"}',
            r"domain\.x=1",
        ],
        ["_comment"],
    )
    assert made["containers"]["my-container"]["cpu_cores"] == 4
    assert made["containers"]["my-container"]["description"] == "hello = world"
    assert made["containers"]["my-container"]["tags"] == ["other", "container"]
    assert made["containers"]["new"] == {"vm_id": 200}
    assert made["pools"]["apps"] == {"comment": "x"}
    assert made["domain.x"] == 1
    assert "_comment" not in made
    assert SMALL["containers"]["my-container"]["cpu_cores"] == 2


@pytest.mark.parametrize("text", ["", ".", "a..b", "a."])
def test_a_path_with_nothing_in_it_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_path(text)


@pytest.mark.parametrize(
    ("assigned", "removed"),
    [
        (["proxmox_node.x=1"], []),
        ([], ["containers.nowhere"]),
        ([], ["nowhere.x"]),
        (["containers.my-container.tags.7=x"], []),
        (["containers.my-container.tags.first=x"], []),
    ],
)
def test_a_change_that_does_not_fit_is_refused(assigned: list[str], removed: list[str]) -> None:
    with pytest.raises(PatchError):
        set_values(SMALL, assigned, removed)


def test_an_assignment_needs_an_equals_sign() -> None:
    with pytest.raises(UsageError):
        set_values(SMALL, ["containers.x"])


def test_a_merge_patch_changes_adds_and_removes() -> None:
    patch = {"containers": {"my-container": {"cpu_cores": 4, "description": None}}, "domain": "x.com"}
    made = apply_patch(SMALL, patch)
    assert made["containers"]["my-container"]["cpu_cores"] == 4
    assert "description" not in made["containers"]["my-container"]
    assert made["domain"] == "x.com"
    assert "description" in SMALL["containers"]["my-container"]


def test_a_json_patch_does_its_operations_in_order() -> None:
    made = apply_patch(
        SMALL,
        [
            {"op": "test", "path": "/containers/my-container/cpu_cores", "value": 2},
            {"op": "replace", "path": "/containers/my-container/cpu_cores", "value": 4},
            {"op": "add", "path": "/containers/my-container/tags/-", "value": "x"},
            {"op": "add", "path": "/pools/a~1b", "value": {}},
            {"op": "remove", "path": "/_comment"},
        ],
    )
    assert made["containers"]["my-container"]["cpu_cores"] == 4
    assert made["containers"]["my-container"]["tags"][-1] == "x"
    assert "a/b" in made["pools"]


@pytest.mark.parametrize(
    "patch",
    [
        3,
        [3],
        [{"op": "remove", "path": "/nowhere"}],
        [{"op": "replace", "path": "/nowhere", "value": 1}],
        [{"op": "add", "path": "/x"}],
        [{"op": "test", "path": "/proxmox_node", "value": "other"}],
        [{"op": "move", "path": "/x", "from": "/y"}],
        [{"op": "add", "path": "x", "value": 1}],
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patch: Any) -> None:
    with pytest.raises(PatchError):
        apply_patch(SMALL, patch)


def test_what_is_written_can_be_read_and_keeps_the_order_and_the_comments() -> None:
    assert list(json.loads(format_object(SMALL))) == list(SMALL)


def test_two_changes_that_do_not_touch_each_other_are_joined() -> None:
    ours = edited(SMALL, **{"containers__my-container__cpu_cores": 4})
    theirs = edited(SMALL, containers__new=CONTAINER)
    joined = merge(SMALL, ours, theirs)
    assert joined.conflicts == ()
    assert joined.data["containers"]["my-container"]["cpu_cores"] == 4
    assert joined.data["containers"]["new"] == CONTAINER


def test_what_both_changed_is_a_conflict_with_all_three_values() -> None:
    path = "containers__my-container__cpu_cores"
    joined = merge(SMALL, edited(SMALL, **{path: 4}), edited(SMALL, **{path: 8}))
    assert [(c.path[-1], c.base, c.ours, c.theirs) for c in joined.conflicts] == [("cpu_cores", 2, 4, 8)]
    assert joined.data["containers"]["my-container"]["cpu_cores"] == 8


def test_removing_what_the_other_side_changed_is_a_conflict() -> None:
    gone = edited(SMALL, **{"containers__my-container": None})
    grown = edited(SMALL, **{"containers__my-container__cpu_cores": 8})
    assert len(merge(SMALL, gone, grown).conflicts) == 1
    assert len(merge(SMALL, grown, gone).conflicts) == 1


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    both = edited(SMALL, containers__new=CONTAINER)
    assert merge(SMALL, both, edited(both)).conflicts == ()
    gone = edited(SMALL, _comment=None)
    assert merge(SMALL, gone, gone).data == gone
