"""The rows of the failure table about the inventory: it is whole and true, or it is the one before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.deployment import CONTAINER, edited
from tests.support.deployment_rig import TWO, Rig, running_rig

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

THREE = edited(TWO, containers__third={**CONTAINER, "vm_id": 125, "hostname": "third"})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_rig(tmp_path, is_applied=False) as made:
        made.yard.run("apply", "deployment")
        yield made


def shown(rig: Rig) -> dict[str, Any]:
    return rig.yard.json("inventory", "show", "deployment")


def test_a_partial_apply_cannot_publish_a_smaller_inventory(rig: Rig) -> None:
    before = shown(rig)["inventory"]
    assert sorted(before["containers"]) == ["my-container", "second"]
    rig.plant(THREE)
    error = rig.error("inventory", "publish", "deployment", status=65)
    assert error["code"] == "E-INVENTORY-INCOMPLETE"
    assert [found["code"] for found in error["diagnostics"]] == ["E-INVENTORY-MISSING"]
    assert "third" in error["diagnostics"][0]["detail"]
    assert shown(rig)["inventory"] == before


def test_an_inventory_that_is_older_than_the_object_is_owed_an_apply_with_both_fingerprints(rig: Rig) -> None:
    assert shown(rig)["freshness"] == "current"
    rig.plant(THREE)
    found = shown(rig)
    assert found["freshness"] == "apply owed"
    assert found["published"]["version"] != found["now"]["version"]
    rig.yard.run("apply", "deployment")
    assert shown(rig)["freshness"] == "current"


def test_an_inventory_whose_object_cannot_be_fetched_is_never_called_current(rig: Rig) -> None:
    store = rig.yard.folder / ".stackyard" / "deployment" / "objects.sqlite"
    away = store.rename(store.with_suffix(".away"))
    found = shown(rig)
    assert (found["freshness"], found["now"]) == ("unknown", None)
    away.rename(store)
    assert shown(rig)["freshness"] == "current"
