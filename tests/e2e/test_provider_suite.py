"""The published score of the bpg/proxmox provider's own acceptance tests: true to itself, and never less."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path

import pytest
from scripts import provider_score

PAGE = provider_score.PAGE.read_text() if provider_score.PAGE.exists() else ""


def listed(title: str) -> list[str]:
    """Return the tests below a heading."""
    _, _, rest = PAGE.partition(f"## {title} (")
    return re.findall(r"`(Test\w+)`", rest.partition("\n## ")[0])


def test_the_published_counts_are_those_of_the_lists() -> None:
    for title in ("Failing", "Skipped", "Passing"):
        found = re.search(rf"^## {title} \((\d+)\)$", PAGE, re.MULTILINE)
        assert found, title
        assert int(found[1]) == len(listed(title))
    assert len(listed("Passing")) >= 166


@pytest.mark.soak
@pytest.mark.bpg
@pytest.mark.timeout(0)
def test_every_test_that_has_passed_passes() -> None:
    suite, engine = os.environ.get("STACKYARD_TEST_BPG_SUITE"), shutil.which("terraform")
    if not suite or engine is None:
        pytest.skip("STACKYARD_TEST_BPG_SUITE names no folder of compiled tests, or there is no terraform")
    asked = argparse.Namespace(run=".", jobs=2, list=False)
    score = provider_score.score(engine, sorted(Path(suite).glob("*.test")), asked)
    passing = {name for name, outcome in score.results.items() if outcome == "PASS"}
    wanted = {name for name in listed("Passing") if name.startswith("TestAcc")}
    assert wanted - passing == set()
