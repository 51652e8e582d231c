"""When a lock object was there, by the times that a bucket tells: whole seconds."""

from __future__ import annotations

import pytest

from stackyard.clients.objects.lock_table import pair_cycles

_OPEN = float("inf")


@pytest.mark.parametrize(
    ("locked", "freed", "cycles"),
    [
        ([10], [12], [(10, 12)]),
        # A plan and an apply in one second: the second cycle goes on into the next.
        ([10, 10], [11, 10], [(10, 10), (10, 11)]),
        # The beginning of an old cycle is no longer kept.
        ([20], [5, 21], [(20, 21)]),
        ([10, 20], [11], [(10, 11), (20, _OPEN)]),
        ([], [5], []),
    ],
)
def test_each_end_belongs_to_one_begin(
    locked: list[float], freed: list[float], cycles: list[tuple[float, float]]
) -> None:
    assert pair_cycles(locked, freed) == cycles
