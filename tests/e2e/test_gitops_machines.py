"""Several GitOps servers on one store in PostgreSQL: each pull request is worked on by one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.gitops_service import Actions, run_service, until
from tests.support.memory_forge import MemoryForge
from tests.support.postgres import Postgres, new_schema, postgres

from stackyard.clients.forge.model import PullState

__all__ = ["postgres"]


async def test_two_machines_share_a_hundred_pull_requests(tmp_path: Path, postgres: Postgres) -> None:
    address, forge = postgres.address(new_schema()), MemoryForge()
    one, two = Actions(work_s=0.02), Actions(work_s=0.02)
    async with (
        run_service(tmp_path / "one", forge, one, address=address) as first,
        run_service(tmp_path / "two", forge, two, address=address) as second,
    ):
        for number in range(1, 101):
            forge.add_pull(number)
        # The forge sends some of them twice, to either.
        posts = [
            rig.post(forge.delivery(number), delivery=f"d-{number}")
            for number in range(1, 101)
            for rig in (first, second)
        ]
        statuses = await asyncio.gather(*posts)
        assert sorted(status for status, _ in statuses) == [200] * 100 + [202] * 100
        await until(lambda: {number for _, number in one.done + two.done} == set(range(1, 101)))
        await first.idle()
        forge.change(7, state=PullState.MERGED)
        forge.change(3, state=PullState.MERGED)
        for number in (7, 3):
            await second.post(forge.delivery(number, "closed"), delivery=f"merged-{number}")
        await until(lambda: sum(what == "apply" for what, _ in one.done + two.done) == 2)
    assert one.done
    assert two.done
