"""Random histories of pull requests, held against a model: nothing twice, nothing that nobody approved."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.support.engine import find_real
from tests.support.gitops_soak import play

from stackyard.engine.version import Flavour

HISTORIES = 200
# Every so many histories are played with runs of the real engine.
REAL_EVERY = 20
# The first two met defects once; the last one applies before the merge.
SEEDS = (0, 15, 23)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(120)
async def test_a_short_history_ends_as_main_says(tmp_path: Path, seed: int) -> None:
    history = await play(seed, tmp_path)
    assert history.wrong == []
    assert history.counts["applies"]


@pytest.mark.soak
@pytest.mark.tofu
@pytest.mark.timeout(3 * 3600)
async def test_soak_of_random_histories_finds_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tofu = find_real(Flavour.TOFU)
    assert not isinstance(tofu, str), tofu
    monkeypatch.setenv("STACKYARD_TOFU", os.fspath(tofu.path))
    counts: Counter[str] = Counter()
    wrong = {}
    for seed in range(HISTORIES):
        is_real = seed % REAL_EVERY == REAL_EVERY - 2
        history = await play(seed, tmp_path / str(seed), is_real=is_real)
        counts.update(history.counts)
        counts["histories with a real engine"] += is_real
        if history.wrong:
            wrong[seed] = history.wrong
    sys.stdout.write(f"\n{HISTORIES} histories: {dict(sorted(counts.items()))}\n")
    assert wrong == {}
