"""When a lock object was there, by the times that a bucket tells: whole seconds."""

from __future__ import annotations

import pytest

from stackyard.clients.objects.lock_table import pair_cycles

_OPEN = float("inf")


@pytest.mark.parametrize(
    ("locked", "freed", "is_held", "cycles"),
    [
        ([10], [12], False, [(10, 12)]),
        # A plan and an apply in one second: the second cycle goes on into the next.
        ([10, 10], [11, 10], False, [(10, 10), (10, 11)]),
        # The beginning of an old cycle is no longer kept.
        ([20], [5, 21], False, [(20, 21)]),
        ([10, 20], [11], True, [(10, 11), (20, _OPEN)]),
        # It is not there any more, and nothing shows when it went: that proves nothing about later writes.
        ([10, 20], [11], False, [(10, 11), (20, 20)]),
        ([10, 20], [], True, [(10, 10), (20, _OPEN)]),
        ([], [5], False, []),
    ],
)
def test_each_end_belongs_to_one_begin(
    locked: list[float], freed: list[float], is_held: bool, cycles: list[tuple[float, float]]
) -> None:
    assert pair_cycles(locked, freed, is_held=is_held) == cycles
