"""Mutations of a valid object: none is accepted that silently means something else."""

from __future__ import annotations

import pytest
from tests.support.deployment_fuzz import fuzz


def test_no_mutation_is_accepted_that_silently_changes_the_meaning() -> None:
    valid, invalid = fuzz(count=500, seed=20_261_116)
    assert valid > 50
    assert invalid > 250


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_ten_thousand_mutations_of_an_object() -> None:
    valid, invalid = fuzz(count=10_000, seed=9)
    assert valid + invalid == 10_000
    assert valid > 1000
