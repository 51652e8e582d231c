"""Room for new disks: what a thin datastore may promise, and what replaced guests give back."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Desired
from stackyard.guard import Cluster, Node, Storage
from stackyard.guard.capacity import find_room
from stackyard.guard.facts import Facts
from stackyard.guard.implied import ImpliedCalls, Overcommit

GIB = 2**30
CLUSTER = Cluster(
    nodes=(Node(name="pve1", memory_bytes=64 * GIB, bridges=frozenset()),),
    storages=(
        Storage(name="thin", node="pve1", free_bytes=10 * GIB, total_bytes=100 * GIB, is_thin=True),
        Storage(name="thick", node="pve1", free_bytes=10 * GIB, total_bytes=100 * GIB),
    ),
    guests=(),
)


def found(datastore: str, *sizes: int, storage: float = 1.0, had: Any = None) -> list[str]:
    vms = [
        {"key": f"web{n}", "name": f"web{n}", "node": "pve1", "vm_id": 100 + n}
        | {"disks": [{"interface": "scsi0", "datastore": datastore, "size_gib": size}]}
        for n, size in enumerate(sizes)
    ]
    desired = Desired.model_validate({"vms": vms})
    implied = ImpliedCalls(
        desired=desired,
        created=frozenset(guest.key for guest in desired.guests),
        had=had or {},
        overcommit=Overcommit(storage=storage),
    )
    return [one.kind.code for one in find_room(implied, Facts(cluster=CLUSTER))]


@pytest.mark.parametrize(
    ("sizes", "limit", "expected"),
    [
        ((10,), 1.0, []),
        ((11,), 1.0, ["W-GUARD-OVERCOMMITS-STORAGE"]),
        ((50, 50), 1.0, ["W-GUARD-OVERCOMMITS-STORAGE"]),
        ((50, 51), 1.0, ["E-GUARD-TOO-MUCH-STORAGE"]),
        ((50, 51), 2.0, ["W-GUARD-OVERCOMMITS-STORAGE"]),
        ((200,), 2.0, ["W-GUARD-OVERCOMMITS-STORAGE"]),
        ((200, 1), 2.0, ["E-GUARD-TOO-MUCH-STORAGE"]),
    ],
)
def test_a_thin_datastore_may_promise_as_many_times_its_size_as_the_site_says(
    sizes: tuple[int, ...], limit: float, expected: list[str]
) -> None:
    assert found("thin", *sizes, storage=limit) == expected


def test_a_datastore_that_is_not_thin_has_what_is_free_whatever_the_site_says() -> None:
    assert found("thick", 10, storage=50) == []
    assert found("thick", 11, storage=50) == ["E-GUARD-TOO-MUCH-STORAGE"]


@pytest.mark.parametrize("datastore", ["thin", "thick"])
def test_a_guest_that_is_replaced_and_needs_no_more_than_before_is_not_refused(datastore: str) -> None:
    had = {"web0": {"node_name": "pve1", "disk": [{"datastore_id": datastore, "size": 300}]}}
    assert found(datastore, 300, had=had) == []
    assert found(datastore, 310, had=had) == []
    assert "E-GUARD-TOO-MUCH-STORAGE" in found(datastore, 450, had=had)
    elsewhere = {"web0": {"node_name": "pve1", "disk": [{"datastore_id": "gone", "size": 300}]}}
    assert found(datastore, 300, had=elsewhere) == ["E-GUARD-TOO-MUCH-STORAGE"]
