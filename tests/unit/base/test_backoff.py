"""Pauses between attempts grow up to the longest."""

from __future__ import annotations

import itertools

from stackyard.base.backoff import Backoff


def test_pauses_grow_up_to_the_longest() -> None:
    assert list(itertools.islice(Backoff(0.5, 3.0), 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_every_wait_begins_with_the_first_pause() -> None:
    backoff = Backoff(1.0, 10.0, growth=1.5)
    assert next(iter(backoff)) == next(iter(backoff)) == 1.0
