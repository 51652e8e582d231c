"""Addresses of the engines' `http` backend: which are taken, and what becomes of the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.state_client import Client, lock_body, lock_id_of, served, state_body

from stackyard.clients.objects import open_objects
from stackyard.state import AuditAction, StateService
from stackyard.state.http.layouts import LayoutError, read_address

# What engines are configured to send to tfstate-worker, its plain HTTP form, and GitLab.
LOCK_METHODS = [("LOCK", "UNLOCK"), ("PUT", "DELETE"), ("POST", "DELETE")]
ENGINE = {"User-Agent": "Go-http-client/1.1"}


@contextlib.asynccontextmanager
async def serve(folder: Path, *, is_own: bool = False) -> AsyncIterator[tuple[Client, StateService]]:
    service = StateService(open_objects(folder / "store"))
    async with served(service, is_own=is_own) as client:
        yield (client, service)
    service.objects.close()


@pytest.mark.parametrize("prefix", ["", "/tfstate"])
@pytest.mark.parametrize(("lock_method", "unlock_method"), LOCK_METHODS)
async def test_the_lock_of_a_state_is_behind_it(
    tmp_path: Path, prefix: str, lock_method: str, unlock_method: str
) -> None:
    lock, path = lock_body(), f"{prefix}/states/prod/proxmox"

    async with serve(tmp_path) as (client, service):
        assert (await client.request("GET", path)).status == 404
        assert (await client.request(lock_method, f"{path}/lock", lock)).status == 200
        other = await client.request(lock_method, f"{path}/lock", lock_body())
        assert (other.status, other.document["ID"]) == (423, lock_id_of(lock))
        assert (await client.lock("prod/proxmox", lock_body())).status == 423
        assert (await client.request("POST", f"{path}?ID={lock_id_of(lock)}", state_body(1))).status == 200
        assert (await client.request("PUT", f"{path}?ID={lock_id_of(lock)}", state_body(2))).status == 200
        assert (await client.request(unlock_method, f"{path}/lock", lock)).status == 200
        assert (await client.get("prod/proxmox")).body == state_body(2)
        assert await asyncio.to_thread(lambda: list(service.names())) == ["prod/proxmox"]
        assert (await asyncio.to_thread(service.head, "prod/proxmox")).lock is None


async def test_the_lock_of_a_state_is_no_state(tmp_path: Path) -> None:
    async with serve(tmp_path) as (client, service):
        read = await client.get("proxmox/lock")
        assert (read.status, read.document["error"]["code"]) == (400, "E-STATE-LAYOUT")
        assert "/states/NAME" in read.document["error"]["remedy"]
        assert (await client.post("proxmox/lock", state_body(1))).status == 400
        assert list(service.names()) == []
        # A state may be called that.
        await client.cycle("lock", 1)


async def test_a_run_of_ours_may_have_a_target_called_lock(tmp_path: Path) -> None:
    async with serve(tmp_path, is_own=True) as (client, service):
        await client.cycle("stack/lock", 1)
        assert (await client.get("stack/lock")).body == state_body(1)
        assert list(service.names()) == ["stack/lock"]


async def test_a_force_unlock_without_an_id_is_recorded_with_who_sent_it(tmp_path: Path) -> None:
    lock = lock_body()

    async with serve(tmp_path) as (client, service):
        await client.lock("a", lock)
        assert (await client.request("UNLOCK", "/states/a/lock", b"")).status == 200
        entries = await asyncio.to_thread(lambda: list(service.audit.entries("a")))
        (broken,) = [entry for entry in entries if entry.action is AuditAction.BROKEN]
        assert (broken.lock_id, broken.principal) == (lock_id_of(lock), "admin")
        assert "without an ID" in broken.detail


@pytest.mark.parametrize("proxy", [None, "X-Forwarded-For", "Via"])
async def test_a_client_that_locks_one_state_and_reads_another_is_refused(
    tmp_path: Path, proxy: str | None
) -> None:
    headers = {**ENGINE, **({proxy: "10.0.0.9"} if proxy else {})}

    async with serve(tmp_path) as (client, service):
        del service
        await client.cycle("a", 1)
        lock = lock_body()
        granted = await client.request("LOCK", "/states/b", lock, headers)
        # An engine reads no body here, and would give up its connection for one.
        assert (granted.status, granted.body) == (200, b"")
        read = await client.request("GET", "/states/a", None, headers)
        if proxy is not None:
            # Its connection is one of many clients.
            assert read.status == 200
            return
        assert (read.status, read.document["error"]["code"]) == (400, "E-STATE-LAYOUT")
        assert (await client.request("GET", "/states/b", None, headers)).status == 404
        assert (await client.request("UNLOCK", "/states/b", lock, headers)).status == 200
        assert (await client.request("GET", "/states/a", None, headers)).status == 200


@pytest.mark.parametrize("path", ["/", "/tfstate/proxmox", "/states", "/tfstate/states", "/x/states/a"])
def test_an_address_that_is_none_of_ours_names_those_that_are(path: str) -> None:
    with pytest.raises(LayoutError, match="lock_address and unlock_address"):
        read_address(path, "GET")
