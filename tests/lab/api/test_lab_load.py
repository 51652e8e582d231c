"""Many clients at once, also on a lab that is killed under them: nothing is lost, shared or miscounted."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import ROOMY, LabClient, lab_client
from tests.support.lab_consistency import Gone, problems_in
from tests.support.lab_load import NODES, Crowd, Door, Member
from tests.support.lab_process import start_lab

STORAGES = ("local", "local-lvm")


async def check(api: LabClient, crowd: Crowd) -> None:
    """Hold what every client was told against what the lab says now."""
    lost = {
        int(task["id"])
        for task in api.world.tasks.newest_first()
        if task.get("status") == "unexpected status"
    }
    assert crowd.doubtful or not lost
    resources = await api.get("/cluster/resources", type="vm")
    present = Counter(row["vmid"] for row in resources)
    assert set(present.values()) == {1}
    shared = {int(path.rpartition("/")[2]) for path in crowd.shared}
    assert (
        crowd.owned.keys() - crowd.doubtful <= present.keys() - shared <= crowd.owned.keys() | crowd.doubtful
    )
    for vmid, text in crowd.noted.items():
        if vmid not in crowd.doubtful:
            config = await api.get(f"{crowd.owned[vmid]}/config")
            assert config["description"].rstrip("\n") == text
    for path, tags in crowd.joined.items():
        config = await api.get(f"{path}/config")
        assert tags <= set(config.get("tags", "").split(";"))
    for node in NODES:
        for storage in STORAGES:
            status = await api.get(f"/nodes/{node}/storage/{storage}/status")
            rows = await api.get(f"/nodes/{node}/storage/{storage}/content")
            assert status["used"] == sum(row["size"] for row in rows)
    gone = Gone(locked=crowd.doubtful, leftovers=bool(crowd.doubtful))
    assert problems_in(api.world, gone) == []


def load(clients: int, rounds: int) -> Counter[str]:
    """Let clients loose on one lab, in this process, and return what they did."""

    async def main() -> Counter[str]:
        async with lab_client(nodes=NODES) as api:
            crowd = Crowd(Door())
            await crowd.door.open(api.running.url, api.running.api_token)
            try:
                await crowd.prepare(shared=clients // 10)
                await asyncio.gather(*(Member(crowd, number).work(rounds) for number in range(clients)))
            finally:
                await crowd.door.close()
            assert crowd.doubtful == set()
            await check(api, crowd)
            return crowd.counts

    return asyncio.run(main())


def load_and_kill(data: Path, *, clients: int, kills: int, between: int) -> Counter[str]:
    """Let clients loose on a lab in a process of its own, which is killed after so many answers each time."""
    latency = ("--latency", "create=0.02,clone=0.02,snapshot=0.02,delete=0.02,allocate=0.005")

    async def kill_now_and_then(crowd: Crowd) -> None:
        seed = data.with_name("seed.json")
        seed.write_text(json.dumps({"storages": ROOMY.storages}))
        lab = await start_lab(data, "--nodes", ",".join(NODES), "--seed", str(seed), *latency)
        try:
            await crowd.door.open(lab.ready["url"], lab.ready["api_token"])
            await crowd.prepare(shared=clients // 10)
            enough = asyncio.Event()
            members = [Member(crowd, number) for number in range(clients)]
            everybody = asyncio.gather(*(member.work_until(enough) for member in members))
            for _ in range(kills):
                answers = asyncio.ensure_future(crowd.door.wait_for_answers(between))
                either: set[asyncio.Future[Any]] = {answers, everybody}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not answers.done():
                    # Nobody asks any more: one of them has failed.
                    answers.cancel()
                    await everybody
                await lab.kill()
                crowd.counts["kills"] += 1
                await crowd.door.close()
                lab = await start_lab(data, *latency)
                await crowd.door.open(lab.ready["url"], lab.ready["api_token"])
            enough.set()
            await everybody
        finally:
            await lab.kill()

    async def main() -> Counter[str]:
        crowd = Crowd(Door())
        try:
            await kill_now_and_then(crowd)
        finally:
            await crowd.door.close()
        async with lab_client(data=data) as api:
            await check(api, crowd)
        return crowd.counts

    return asyncio.run(main())


# Only to end what hangs: two hundred clients and their lab share one core with other tests.
@pytest.mark.timeout(600)
@pytest.mark.soak
def test_two_hundred_clients_at_once_lose_nothing_and_share_no_number() -> None:
    counts = load(clients=200, rounds=1)
    assert counts["created"] == counts["cloned"] == counts["joined"] == 200
    assert counts["conflicts"] > 0
    assert counts["interrupted"] == 0


def test_what_a_lab_confirmed_survives_when_it_is_killed(tmp_path: Path) -> None:
    counts = load_and_kill(tmp_path / "data", clients=20, kills=3, between=150)
    assert counts["interrupted"] > 0
    assert counts["created"] > 20


# --- Long runs


def say(name: str, counts: Counter[str], began_s: float) -> None:
    done = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    sys.stdout.write(f"\n{name}: {done} in {time.monotonic() - began_s:.0f} s\n")


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_two_hundred_clients_for_long_lose_nothing() -> None:
    began_s = time.monotonic()
    counts = load(clients=200, rounds=25)
    say("200 clients", counts, began_s)
    assert counts["created"] == 200 * 25


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_lab_that_is_killed_many_times_under_two_hundred_clients_keeps_its_word(tmp_path: Path) -> None:
    began_s = time.monotonic()
    counts = load_and_kill(tmp_path / "data", clients=200, kills=20, between=5000)
    say("200 clients, killed", counts, began_s)
    assert counts["interrupted"] > 200
