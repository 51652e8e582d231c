"""The lab answers recorded calls as it did at earlier commits."""

from __future__ import annotations

import asyncio

import pytest
from tests.compatibility.golden import compare, kept_names
from tests.compatibility.lab_calls import CALLS, answers


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_answered_as_before(name: str) -> None:
    compare(f"lab/{name}.json", asyncio.run(answers(name)))


def test_every_kept_answer_belongs_to_calls() -> None:
    kept = {name for name in kept_names("lab") if name.endswith(".json")}
    assert kept == {f"{name}.json" for name in CALLS}
