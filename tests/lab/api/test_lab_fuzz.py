"""Made-up requests to every method that the lab answers: no defect, no secret, a sound lab afterwards.

STACKYARD_TEST_SEED=<number> makes other requests; the number of a failure makes the same ones again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter

import pytest
from tests.support.lab_fuzz import Fuzzer, bound_endpoints, seeded_lab

from pvelab import control as controls
from pvelab.server.control import ControlRoute
from pvelab.server.routing import members

SEED = int(os.environ.get("STACKYARD_TEST_SEED", "1"))
SOAK_ROUNDS = int(os.environ.get("STACKYARD_TEST_SOAK_ROUNDS", "200"))

# aiohttp warns of names of uploaded files that it cannot read; that is the client's doing.
pytestmark = pytest.mark.filterwarnings("ignore::aiohttp.multipart.BadContentDispositionHeader")


def fuzz(seed: int, rounds: int) -> Counter[int]:
    """Send every method some requests and return how often each status was answered."""

    async def main() -> Counter[int]:
        async with seeded_lab() as api:
            fuzzer = Fuzzer(api, seed)
            await fuzzer.run(bound_endpoints(), rounds)
            failures = "\n".join(fuzzer.failures[:5])
            assert not fuzzer.failures, f"seed {seed}, {len(fuzzer.failures)} failures:\n{failures}"
            return fuzzer.statuses

    return asyncio.run(main())


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_no_made_up_request_finds_a_defect_or_breaks_the_lab(part: int) -> None:
    statuses = fuzz(SEED + part, rounds=2)
    assert statuses.total() == 2 * len(bound_endpoints())
    # Requests that are all refused at the door would prove nothing.
    assert statuses[200] > statuses.total() / 5


async def test_no_made_up_order_to_the_lab_itself_finds_a_defect() -> None:
    async with seeded_lab() as api:
        fuzzer = Fuzzer(api, SEED)
        for _ in range(10):
            for route in members(controls, ControlRoute):
                await fuzzer.steer(route)
        assert fuzzer.failures == []
        assert fuzzer.statuses[200] > 0


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_long_run_of_made_up_requests_finds_nothing() -> None:
    began_s = time.monotonic()
    statuses: Counter[int] = Counter()
    for number in range(SOAK_ROUNDS // 10):
        seed = SEED + 1000 + number
        statuses += fuzz(seed, rounds=10)
        counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
        text = f"seed {seed}: {statuses.total():,} requests in {time.monotonic() - began_s:.0f} s ({counts})"
        sys.stdout.write(f"\n{text}")
        sys.stdout.flush()
    assert statuses[200] > statuses.total() / 5
