"""A queue in PostgreSQL: its server goes away and comes back, its tables are those of another version."""

from __future__ import annotations

import contextlib

import pytest
from tests.support.gitops_queues import REPOSITORY, look
from tests.support.postgres import Postgres, new_schema, postgres, start_postgres, use_password

from stackyard.clients.objects import StoreBusyError, StoreDamagedError, StoreError, open_objects
from stackyard.clients.objects.postgres import PostgresAddress
from stackyard.gitops.queue import Put
from stackyard.gitops.queue.postgres import PostgresQueue

__all__ = ["postgres"]


def make_queue(server: Postgres, schema: str) -> PostgresQueue:
    open_objects(server.address(schema)).close()
    address = PostgresAddress.parse(server.address(schema))
    return PostgresQueue(address, REPOSITORY, beat_every_s=0.2, silent_s=2.0, connect_s=2.0)


@pytest.mark.timeout(120)
async def test_a_database_that_went_away_is_an_error_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_password(monkeypatch)
    with start_postgres() as server:
        async with make_queue(server, new_schema()) as queue:
            await queue.put(look(7), delivery="d-1")
            taken = await queue.take(20.0)
            assert taken is not None
            server.kill()
            for asked in (lambda: queue.put(look(8), delivery="d-2"), lambda: queue.take(0.0), queue.pending):
                with pytest.raises((StoreError, StoreBusyError)):
                    await asked()
            server.start()
            for _ in range(20):
                # The first ones may meet connections of before.
                with contextlib.suppress(StoreError, StoreBusyError):
                    assert await queue.put(look(8), delivery="d-2") is Put.QUEUED
                    break
            job = await queue.take(20.0)
            assert job is not None
            numbers = {one.job.args["number"] for one in await queue.pending()}
            assert numbers == {7, 8}
            await queue.done(job)


async def test_tables_of_another_version_are_refused(postgres: Postgres) -> None:
    schema = new_schema()
    async with make_queue(postgres, schema):
        pass
    postgres.run(f"UPDATE {schema}.gitops_queue_format SET version = 2")
    with pytest.raises(StoreDamagedError, match="another version"):
        async with make_queue(postgres, schema):
            pass


async def test_repositories_in_one_database_know_nothing_of_each_other(postgres: Postgres) -> None:
    schema = new_schema()
    address = PostgresAddress.parse(postgres.address(schema))
    async with make_queue(postgres, schema) as one, PostgresQueue(address, "home/other") as other:
        assert await one.put(look(7), delivery="d-1") is Put.QUEUED
        assert await other.put(look(7), delivery="d-1") is Put.QUEUED
        first, second = await one.take(20.0), await other.take(20.0)
        assert first is not None
        assert second is not None
        assert first.id != second.id
        assert await one.take(0.0) is None
