"""The protocol of the engines' `http` backend, on every kind of store."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from tests.support.state_client import LINEAGE, Client, lock_body, lock_id_of, served, state_body
from tests.support.state_stores import Store, store

from stackyard.state import Actor, AuditAction, Override, Policy, StateService

__all__ = ["store"]

ME = Actor(principal="tests")
NO_LOCKS = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b'"x"',
    b"garbage",
    b'{"ID":""}',
    b'{"ID":5}',
    b'{"ID":"x","Who":1}',
    b"\xff\xfe",
    b"{" * 70_000,
]
NO_STATES = [
    b"",
    b"  \n",
    b"garbage",
    b"[]",
    b"{}",
    b'{"serial":2}',
    b'{"serial":"2","lineage":"x","version":4}',
    b'{"serial":true,"lineage":"x","version":4}',
    b'{"serial":-1,"lineage":"x","version":4}',
    b'{"serial":2,"lineage":"","version":4}',
    b'{"serial":2,"lineage":"x","version":3}',
    b'{"serial":2,"lineage":"x","version":4,"resources":7}',
    state_body(2)[:-10],
]
TRICKS = [
    "",
    "/",
    "..",
    "a/../b",
    "%2e%2e/b",
    "a//b",
    "a/",
    "a%00b",
    "a%0ab",
    "a!b",
    "a%5cb",
    "..%2f..%2fetc",
    "%ff",
    "x" * 401,
    ".",
    "a%252fb",
]


@contextlib.asynccontextmanager
async def serve(
    store: Store, policy: Policy | None = None, **options: Any
) -> AsyncIterator[tuple[Client, StateService]]:
    """Run something against a service of its own."""

    service = StateService(store.open(), policy)
    async with served(service, **options) as client:
        yield (client, service)


# --- Reading


async def test_only_a_state_that_was_never_written_is_not_found(store: Store) -> None:
    async with serve(store) as (client, service):
        assert (await client.get("prod/net")).status == 404
        lock = lock_body()
        await client.lock("prod/net", lock)
        assert (await client.get("prod/net")).status == 404
        await client.post("prod/net", state_body(1), lock_id_of(lock))
        await client.unlock("prod/net", lock)
        found = await client.get("prod/net")
        assert (found.status, found.body) == (200, state_body(1))
        await asyncio.to_thread(service.delete, "prod/net", ME, reason="gone")
        assert (await client.get("prod/net")).status == 410
        assert (await client.lock("prod/net", lock_body())).status == 410
        await asyncio.to_thread(service.restore, "prod/net", ME)
        assert (await client.get("prod/net")).body == state_body(1)


async def test_a_large_state_comes_back_byte_by_byte_compressed_or_not(store: Store) -> None:
    body = state_body(1, resources=4000)

    async with serve(store) as (client, service):
        del service
        lock = lock_body()
        await client.lock("big", lock)
        assert (await client.post("big", body, lock_id_of(lock))).status == 200
        for encoding in ("gzip", "identity", "gzip;q=0"):
            found = await client.request("GET", "/states/big", headers={"Accept-Encoding": encoding})
            assert (found.status, found.body) == (200, body)
            assert (found.headers.get("Content-Encoding") == "gzip") == (encoding == "gzip")


# --- Locking


async def test_the_same_id_locks_and_unlocks_again_and_another_is_shown_the_holder(store: Store) -> None:
    mine, theirs = lock_body(who="me@here"), lock_body(who="them@there")

    async with serve(store) as (client, service):
        del service
        assert (await client.lock("a", mine)).status == 200
        assert (await client.lock("a", mine)).status == 200
        refused = await client.lock("a", theirs)
        assert (refused.status, refused.body) == (423, mine)
        refused = await client.unlock("a", theirs)
        assert (refused.status, refused.body) == (423, mine)
        assert (await client.unlock("a", mine)).status == 200
        assert (await client.unlock("a", mine)).status == 200
        assert (await client.lock("a", theirs)).status == 200
        assert (await client.unlock("a", mine)).status == 200
        assert (await client.lock("a", lock_body())).status == 423


async def test_of_fifty_who_lock_at_once_one_gets_it(store: Store) -> None:
    async with serve(store) as (client, service):
        count = 8 if store.kind == "s3" else 50
        replies = await asyncio.gather(*(client.lock("a", lock_body()) for _ in range(count)))
        assert sorted(reply.status for reply in replies) == [200] + [423] * (count - 1)
        holder = next(reply.document["ID"] for reply in replies if reply.status == 200)
        assert {reply.document["ID"] for reply in replies} == {holder}
        head = await asyncio.to_thread(service.head, "a")
        assert head.epoch == 1


async def test_an_id_is_granted_once_so_that_a_late_duplicate_locks_nothing(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        await client.lock("a", lock)
        await client.unlock("a", lock)
        late = await client.lock("a", lock)
        assert (late.status, late.document["ID"]) == (409, lock_id_of(lock))
        assert (await asyncio.to_thread(service.head, "a")).lock is None


async def test_both_forms_of_force_unlock_break_the_lock_and_fence_its_holder(store: Store) -> None:
    async with serve(store) as (client, service):
        for number, form in enumerate(("id", "empty")):
            name, lock = f"s{number}", lock_body()
            await client.cycle(name, 1)
            await client.lock(name, lock)
            bare = json.dumps({"ID": lock_id_of(lock), "Created": "0001-01-01T00:00:00Z"}).encode()
            assert (await client.unlock(name, bare if form == "id" else b"")).status == 200
            assert (await client.post(name, state_body(2), lock_id_of(lock))).status == 409
            await client.cycle(name, 2, note="theirs")
            late = await client.post(name, state_body(2, note="mine"), lock_id_of(lock))
            assert late.status == 409
            assert (await client.get(name)).body == state_body(2, note="theirs")
            kept = await asyncio.to_thread(list, service.contents.list_quarantined(name))
            assert [one.serial for one in kept] == [2, 2]
            _, body = await asyncio.to_thread(service.contents.read_quarantined, name, kept[-1].id)
            assert body == state_body(2, note="mine")


async def test_an_unlock_without_an_id_is_refused_where_the_service_says_so(store: Store) -> None:
    lock = lock_body()

    async with serve(store, Policy(empty_unlock=False)) as (client, service):
        del service
        await client.lock("a", lock)
        assert (await client.unlock("a", b"")).status == 409
        assert (await client.lock("a", lock_body())).status == 423


async def test_a_lock_that_could_never_be_unlocked_is_refused(store: Store) -> None:
    async with serve(store) as (client, service):
        del service
        for body in NO_LOCKS:
            assert (await client.lock("a", body)).status in (400, 413), body[:50]
        await client.cycle("a", 1)


async def test_a_frozen_state_tells_clients_why_and_lets_the_holder_finish(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        await client.cycle("a", 1)
        await client.lock("a", lock)
        await asyncio.to_thread(service.locks.freeze, "a", ME, reason="moving house")
        assert (await client.post("a", state_body(2), lock_id_of(lock))).status == 200
        assert (await client.unlock("a", lock)).status == 200
        refused = await client.lock("a", lock_body())
        assert (refused.status, refused.document["Info"]) == (423, "moving house")
        assert refused.document["Created"].endswith("Z")
        await asyncio.to_thread(service.locks.thaw, "a", ME)
        await client.cycle("a", 3)


# --- Writing


async def test_what_is_no_state_is_refused_and_changes_nothing(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        del service
        await client.cycle("a", 1)
        await client.lock("a", lock)
        for body in NO_STATES:
            assert (await client.post("a", body, lock_id_of(lock))).status == 400, body[:50]
        assert (await client.get("a")).body == state_body(1)


async def test_a_wrong_checksum_is_refused(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        del service
        await client.lock("a", lock)
        for md5 in ("AAAAAAAAAAAAAAAAAAAAAA==", "not base64"):
            assert (await client.post("a", state_body(1), lock_id_of(lock), Content_MD5=md5)).status == 400
        assert (await client.get("a")).status == 404


async def test_writes_follow_the_stored_state_or_are_kept_aside(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        await client.cycle("a", 5)
        await client.lock("a", lock)
        mine = lock_id_of(lock)
        wrong = {
            "older": state_body(4),
            "same serial": state_body(5, note="other"),
            "lineage": state_body(6, lineage=str(uuid.uuid4())),
        }
        for body in wrong.values():
            assert (await client.post("a", body, mine)).status == 409
        assert (await client.post("a", state_body(5), mine)).status == 200
        assert (await client.post("a", state_body(6), mine)).status == 200
        assert (await client.post("a", state_body(6), mine)).status == 200
        kept = await asyncio.to_thread(list, service.contents.list_quarantined("a"))
        assert [one.serial for one in kept] == [4, 5, 6]
        assert [version.serial for version in service.versions.newest_first("a")] == [6, 5]


async def test_a_grant_lifts_the_rules_it_names_for_one_write(store: Store) -> None:
    async with serve(store) as (client, service):
        await client.cycle("a", 5)
        other = str(uuid.uuid4())
        lock = lock_body()
        await client.lock("a", lock)
        mine = lock_id_of(lock)

        async def grant(*overrides: Override) -> None:
            await asyncio.to_thread(service.grant, "a", overrides, ME, reason="migration")

        await grant(Override.SERIAL)
        assert (await client.post("a", state_body(1, lineage=other), mine)).status == 409
        await grant(Override.SERIAL, Override.LINEAGE)
        assert (await client.post("a", state_body(1, lineage=other), mine)).status == 200
        assert (await client.post("a", state_body(0, lineage=LINEAGE), mine)).status == 409
        version = next(iter(service.versions.newest_first("a")))
        assert "migration" in version.note


async def test_a_write_without_the_lock_is_refused_whoever_holds_it(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        del service
        assert (await client.post("a", state_body(1), "unknown")).status == 409
        await client.lock("a", lock)
        without = await client.post("a", state_body(1))
        assert (without.status, without.body) == (423, lock)
        assert (await client.post("a", state_body(1), "unknown")).status == 409
        assert (await client.get("a")).status == 404


async def test_a_write_without_a_lock_is_taken_where_nobody_holds_it_and_it_follows(store: Store) -> None:
    lock = lock_body()

    async with serve(store) as (client, service):
        assert (await client.post("a", state_body(1))).status == 200
        # Of two that began with the same content, the second is kept and not stored.
        assert (await client.post("a", state_body(1, note="other"))).status == 409
        assert (await client.post("a", state_body(2))).status == 200
        await client.lock("a", lock)
        assert (await client.post("a", state_body(3))).status == 423
        assert [one.serial for one in service.contents.list_quarantined("a")] == [1, 3]
        written = [one for one in service.audit.entries("a") if one.action is AuditAction.WRITTEN]
        assert {one.detail for one in written} == {"written without a lock"}


async def test_writes_without_a_lock_can_be_refused(store: Store) -> None:
    async with serve(store, Policy(unlocked_writes=False)) as (client, service):
        assert (await client.post("a", state_body(1))).status == 409
        assert [one.serial for one in service.contents.list_quarantined("a")] == [1]


async def test_a_write_that_drops_most_resources_needs_a_grant_where_that_is_the_rule(store: Store) -> None:
    lock = lock_body()

    async with serve(store, Policy(max_drop_percent=50)) as (client, service):
        await client.cycle("a", 1, resources=10)
        await client.lock("a", lock)
        assert (await client.post("a", state_body(2, resources=4), lock_id_of(lock))).status == 409
        await asyncio.to_thread(service.grant, "a", (Override.DROP,), ME, reason="destroy")
        assert (await client.post("a", state_body(2, resources=4), lock_id_of(lock))).status == 200


async def test_a_compressed_body_is_taken_and_a_bomb_is_not(store: Store) -> None:
    lock = lock_body()

    async with serve(store, max_body_bytes=2_000_000) as (client, service):
        del service
        await client.lock("a", lock)
        mine = lock_id_of(lock)
        sent = gzip.compress(state_body(1))
        assert (await client.post("a", sent, mine, Content_Encoding="gzip")).status == 200
        assert (await client.get("a")).body == state_body(1)
        assert (await client.post("a", sent[:-5], mine, Content_Encoding="gzip")).status == 400
        assert (await client.post("a", b"plain", mine, Content_Encoding="gzip")).status == 400
        assert (await client.post("a", sent, mine, Content_Encoding="br")).status == 400
        bomb = gzip.compress(b" " * 3_000_000)
        assert (await client.post("a", bomb, mine, Content_Encoding="gzip")).status == 413
        assert (await client.post("a", b"x" * 2_000_001, mine)).status == 413


# --- Names


async def test_names_have_slashes_and_do_not_run_into_one_another(store: Store) -> None:
    async with serve(store) as (client, service):
        names = ["a", "a/b", "a/b/c", "a-b", "env:/x".replace("/", ""), "a.b"]
        for serial, name in enumerate(names, 1):
            await client.cycle(name, serial)
        for serial, name in enumerate(names, 1):
            assert (await client.get(name)).body == state_body(serial)
        assert sorted(service.names()) == sorted(names)
        assert list(service.names("a/b")) == ["a/b", "a/b/c"]


async def test_a_trick_with_the_path_is_refused_and_never_looks_like_an_empty_state(store: Store) -> None:
    async with serve(store) as (client, service):
        for path in TRICKS:
            for method, body in (("GET", None), ("LOCK", lock_body()), ("POST", state_body(1))):
                assert (await client.request(method, f"/states/{path}", body)).status == 400, path
        assert list(service.names()) == []


async def test_an_address_that_is_not_ours_is_never_answered_with_not_found(store: Store) -> None:
    async with serve(store) as (client, service):
        del service
        for path in ("/", "/state/a", "/states", "/v1/states/a"):
            for method, body in (("GET", None), ("LOCK", lock_body()), ("POST", state_body(1))):
                refused = await client.request(method, path, body)
                assert (refused.status, refused.document["error"]["code"]) == (400, "E-STATE-LAYOUT")
                assert "/tfstate" in refused.document["error"]["detail"]
        assert (await client.request("DELETE", "/states/a")).status == 405


async def test_a_mistyped_name_is_an_error_where_states_are_registered(store: Store) -> None:
    async with serve(store, Policy(create_states=False)) as (client, service):
        assert (await client.get("prdo")).status == 409
        assert (await client.lock("prdo", lock_body())).status == 422
        assert (await client.post("prdo", state_body(1))).status == 409
        await asyncio.to_thread(service.register, "prod", ME)
        assert (await client.get("prod")).status == 404
        await client.cycle("prod", 1)
