"""Saved plans in the store: found by an id or its beginning, listed by state, gone when discarded."""

from __future__ import annotations

import pytest

from stackyard.clients.objects import ABSENT, MemoryObjects
from stackyard.path.planfile import PlanFileError
from stackyard.path.saved_plans import PlanUnknownError, find_plan, list_plans, read_plan

IDS = ("20260101T000000Z-aaaaaa", "20260101T000000Z-aabbbb", "20260202T000000Z-cccccc")


@pytest.fixture
def objects() -> MemoryObjects:
    made = MemoryObjects()
    for which, state in zip(IDS, ("env!b!lab", "env!a!lab", "env!a!lab"), strict=True):
        made.put(f"plans/{state}/{which}", b"no plan", expect=ABSENT)
    return made


def test_plans_are_listed_by_state_in_the_order_they_were_saved(objects: MemoryObjects) -> None:
    listed = [(one.state, one.id) for one in list_plans(objects)]
    assert listed == [("env/a/lab", IDS[1]), ("env/a/lab", IDS[2]), ("env/b/lab", IDS[0])]
    assert all(one.size == 7 for one in list_plans(objects))


@pytest.mark.parametrize("named", [IDS[2], f"store:{IDS[2]}", "20260202", "store:202602"])
def test_a_plan_is_found_by_as_much_of_its_id_as_is_enough(objects: MemoryObjects, named: str) -> None:
    assert find_plan(objects, named).id == IDS[2]


@pytest.mark.parametrize(
    ("named", "words"), [("2026", "More than one"), ("2027", "no saved plan"), ("store:", "no saved plan")]
)
def test_a_name_of_none_or_of_several_is_refused(objects: MemoryObjects, named: str, words: str) -> None:
    with pytest.raises(PlanUnknownError, match=words):
        find_plan(objects, named)


def test_a_plan_that_was_discarded_meanwhile_is_unknown_and_another_thing_is_no_plan(
    objects: MemoryObjects,
) -> None:
    found = find_plan(objects, IDS[2])
    with pytest.raises(PlanFileError):
        read_plan(objects, found, ())
    objects.delete(found.key)
    with pytest.raises(PlanUnknownError, match="discarded"):
        read_plan(objects, found, ())
