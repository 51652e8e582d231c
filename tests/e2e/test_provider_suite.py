"""The provider's own acceptance tests: what passed when the score was published still passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = os.environ.get("STACKYARD_TEST_BPG_SUITE")


def published() -> set[str]:
    page = (ROOT / "docs" / "reference" / "lab-score.md").read_text()
    passing = page.split("## Passing", 1)[1]
    return set(re.findall(r"`(Test\w+)`", passing))


def test_the_published_page_counts_what_it_lists() -> None:
    page = (ROOT / "docs" / "reference" / "lab-score.md").read_text()
    counted = re.search(r"tests: (\d+) pass", page)
    assert counted is not None
    assert int(counted[1]) == len(published())


@pytest.mark.soak
@pytest.mark.bpg
@pytest.mark.timeout(7200)
@pytest.mark.skipif(SUITE is None, reason="STACKYARD_TEST_BPG_SUITE names no compiled tests of bpg/proxmox")
def test_the_set_of_passing_tests_does_not_shrink() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.provider_score", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    passed = set(re.findall(r"^PASS (Test\w+)$", done.stdout, re.MULTILINE))
    assert published() - passed == set()
