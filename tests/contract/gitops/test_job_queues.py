"""What every queue of the GitOps server does, wherever it keeps its jobs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.support.gitops_queues import QueuePlace, look, queues, shared_queues

from stackyard.gitops.queue import JobLostError, JobQueue, Put, QueuedJob

__all__ = ["queues", "shared_queues"]

# Longer than any machine needs; a test that passes does not wait for it.
PATIENCE_S = 60.0
# A worker of one machine looks this often whether another one's jobs became free.
LOOK_S = 3.0


async def take(queue: JobQueue, timeout_s: float = PATIENCE_S) -> QueuedJob:
    job = await queue.take(timeout_s)
    assert job is not None
    return job


async def drain(queue: JobQueue) -> list[int]:
    found = []
    while (job := await queue.take(0.0)) is not None:
        found.append(job.job.args["number"])
        await queue.done(job)
    return found


async def test_a_job_is_given_once_and_is_gone_when_it_is_done(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        assert await queue.put(look(7)) is Put.QUEUED
        job = await take(queue)
        assert (job.job.kind, job.job.args, job.job.lock, job.job.key, job.attempts) == (
            *("look", {"number": 7}, "pull-7", "look-7"),
            0,
        )
        assert await queue.take(0.0) is None
        assert [one.is_running for one in await queue.pending()] == [True]
        await queue.done(job)
        assert await queue.pending() == await queue.pending()
        assert list(await queue.pending()) == []


async def test_a_delivery_that_comes_again_adds_nothing_also_after_its_job_is_done(
    queues: QueuePlace,
) -> None:
    async with queues.open() as queue:
        assert await queue.put(look(7, key=""), delivery="d-1") is Put.QUEUED
        assert await queue.put(look(7, key=""), delivery="d-1") is Put.REPEATED
        assert await drain(queue) == [7]
        assert await queue.put(look(7, key=""), delivery="d-1") is Put.REPEATED
        assert await queue.put(look(7, key=""), delivery="d-2") is Put.QUEUED
        assert await drain(queue) == [7]


async def test_one_that_waits_already_is_not_added_and_one_that_runs_is_followed_by_another(
    queues: QueuePlace,
) -> None:
    async with queues.open() as queue:
        assert await queue.put(look(7), delivery="d-1") is Put.QUEUED
        assert await queue.put(look(7), delivery="d-2") is Put.MERGED
        # A delivery counts as received also where its job was there.
        assert await queue.put(look(7), delivery="d-2") is Put.REPEATED
        job = await take(queue)
        assert await queue.put(look(7), delivery="d-3") is Put.QUEUED
        assert await queue.take(0.0) is None
        await queue.done(job)
        assert await drain(queue) == [7]


async def test_jobs_of_a_lock_run_in_their_order_and_others_pass_them(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        for number in (1, 2, 3):
            await queue.put(look(number, lock="apply"))
        await queue.put(look(4, lock="other"))
        first, other = await take(queue), await take(queue)
        assert (first.job.args["number"], other.job.args["number"]) == (1, 4)
        assert await queue.take(0.0) is None
        await queue.done(first)
        assert await drain(queue) == [2, 3]
        await queue.done(other)


async def test_a_job_that_is_tried_again_keeps_its_place(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        await queue.put(look(1, lock="apply"))
        await queue.put(look(2, lock="apply"))
        await queue.retry(await take(queue), after_s=600.0)
        # The one behind it waits too, else the order of a target would depend on failures.
        assert await queue.take(0.0) is None
        waiting = list(await queue.pending())
        assert [one.attempts for one in waiting] == [1, 0]
        assert waiting[0].not_before > time.time() + 300


async def test_a_job_is_tried_again_after_its_pause(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        await queue.put(look(1))
        began = time.monotonic()
        await queue.retry(await take(queue), after_s=0.3)
        job = await take(queue)
        assert time.monotonic() - began >= 0.29
        assert job.attempts == 1
        await queue.done(job)


async def test_a_job_that_failed_gives_way_to_the_same_one_that_waits(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        await queue.put(look(7))
        job = await take(queue)
        await queue.put(look(7))
        await queue.retry(job, after_s=600.0)
        assert [one.is_running for one in await queue.pending()] == [False]
        assert await drain(queue) == [7]


async def test_a_job_that_was_ended_is_ended_once(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        await queue.put(look(7))
        job = await take(queue)
        await queue.done(job)
        with pytest.raises(JobLostError):
            await queue.done(job)
        with pytest.raises(JobLostError):
            await queue.retry(job, after_s=0.0)
        assert list(await queue.pending()) == []


async def test_what_a_worker_leaves_at_its_end_is_given_to_the_next_one(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        await queue.put(look(1, lock="apply"))
        await queue.put(look(2, lock="apply"))
        left = await take(queue)
    async with queues.open() as queue:
        job = await take(queue)
        assert (job.job.args["number"], job.attempts) == (1, 1)
        with pytest.raises(JobLostError):
            await queue.done(left)
        await queue.done(job)
        assert await drain(queue) == [2]


async def test_a_worker_that_waits_is_woken_by_a_job(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        waiting = asyncio.create_task(take(queue))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await queue.put(look(7))
        await queue.done(await waiting)
        assert time.monotonic() - began < LOOK_S


async def test_a_hundred_jobs_at_once_are_all_kept(queues: QueuePlace) -> None:
    async with queues.open() as queue:
        puts = (queue.put(look(number), delivery=f"d-{number}") for number in range(100))
        assert set(await asyncio.gather(*puts)) == {Put.QUEUED}
        assert sorted(await drain(queue)) == list(range(100))


# --- Several processes


async def test_a_process_that_is_killed_behind_the_receipt_loses_nothing(shared_queues: QueuePlace) -> None:
    with shared_queues.process("receive", "7", "d-1") as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "queued\n"
        assert await asyncio.to_thread(process.wait) == -9
    async with shared_queues.open() as queue:
        assert await queue.put(look(7), delivery="d-1") is Put.REPEATED
        job = await take(queue)
        assert job.job.args == {"number": 7}
        await queue.done(job)


async def test_a_job_of_a_worker_that_is_killed_is_given_to_the_next_one(shared_queues: QueuePlace) -> None:
    async with shared_queues.open() as queue:
        await queue.put(look(1, lock="apply"))
        await queue.put(look(2, lock="apply"))
        with shared_queues.process("take") as process:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "1\n"
            # While it lives, nobody else gets its job, nor the one behind it.
            assert await queue.take(0.5) is None
            assert bool(queue.waits_for) is not shared_queues.is_shared
            process.kill()
            await asyncio.to_thread(process.wait)
        job = await take(queue)
        assert (job.job.args["number"], job.attempts) == (1, 1)
        await queue.done(job)
        assert await drain(queue) == [2]


async def test_a_hundred_pull_requests_on_two_workers_are_all_done_in_order(
    shared_queues: QueuePlace, tmp_path: Path
) -> None:
    async with shared_queues.open() as queue:
        for number in range(100):
            await queue.put(look(number, lock=f"target-{number % 7}"), delivery=f"d-{number}")
    log = tmp_path / "log"
    with shared_queues.process("drain", str(log)) as one, shared_queues.process("drain", str(log)) as two:
        for process in (one, two):
            assert await asyncio.to_thread(process.wait) == 0
    lines = [(verb, int(number)) for verb, number in map(str.split, log.read_text().splitlines())]
    assert sorted(number for verb, number in lines if verb == "end") == list(range(100))
    for target in range(7):
        own = [line for line in lines if line[1] % 7 == target]
        assert own == [(verb, number) for number in range(target, 100, 7) for verb in ("begin", "end")]
