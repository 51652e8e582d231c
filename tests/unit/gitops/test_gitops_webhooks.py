"""The door for webhooks: what is taken, what is refused, and how quickly it is answered."""

from __future__ import annotations

import asyncio
import io
import statistics
import time
from pathlib import Path

import aiohttp
import pytest
from tests.support.gitops_service import SECRET, Actions, Rig, run_service, until
from tests.support.memory_forge import MemoryForge, sign

from stackyard.clients.objects import Objects, StoreError
from stackyard.gitops.receiver import HEALTH, LARGEST_BYTES, WEBHOOK


async def test_a_webhook_is_queued_and_its_pull_request_is_planned(tmp_path: Path) -> None:
    forge, actions = MemoryForge(), Actions()
    forge.add_pull(7)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 7)])
        forge.change(7, head="f" * 40)
        assert (await rig.post(forge.delivery(7)))[0] == 202
        await until(lambda: len(actions.done) == 2)


async def test_a_forged_webhook_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    forge, actions = MemoryForge(), Actions()
    body = forge.delivery(7)
    async with run_service(tmp_path, forge, actions) as rig:
        signed = sign(body, SECRET)
        unsigned = {name: value for name, value in signed.items() if name != "X-Gitea-Signature"}
        forged = [
            (body, sign(body, "another secret")),
            (body + b" ", signed),
            (body.replace(b"7", b"8"), signed),
            (body, unsigned),
            (body, {**signed, "X-Gitea-Signature": ""}),
            (body, {**signed, "X-Gitea-Signature": "sha256=" + signed["X-Gitea-Signature"]}),
            (b"", sign(body, SECRET)),
        ]
        for sent, headers in forged:
            status, said = await rig.post(sent, headers)
            assert (status, "not proven" in said) == (401, True)
        assert SECRET not in " ".join(rig.told)
        assert {one.job.kind for one in await rig.service.queue.pending()} <= {"reconcile"}
    assert actions.done == []


async def test_a_webhook_that_comes_again_does_nothing(tmp_path: Path) -> None:
    forge, actions = MemoryForge(), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        forge.add_pull(7)
        assert (await rig.post(forge.delivery(7), delivery="d-9"))[0] == 202
        await until(lambda: ("plan", 7) in actions.done)
        status, said = await rig.post(forge.delivery(7), delivery="d-9")
        assert (status, "repeated" in said) == (200, True)
    async with run_service(tmp_path, forge, actions) as rig:
        # A server that was started again knows it too.
        assert (await rig.post(forge.delivery(7), delivery="d-9"))[0] == 200


async def test_what_is_proven_and_makes_no_sense_is_refused(tmp_path: Path) -> None:
    forge = MemoryForge()
    async with run_service(tmp_path, forge, Actions()) as rig:
        for body in (b"[]", b"{", b'{"repository": 3, "pull_request": {"number": "x"}}', b"\xff\xfe"):
            assert (await rig.post(body))[0] == 400
        other = forge.delivery(7).replace(b"home/infra", b"home/other")
        assert (await rig.post(other))[0] == 404
        assert (await rig.post(forge.delivery(7), event="star"))[0] == 200


async def test_a_webhook_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    async with run_service(tmp_path, MemoryForge(), Actions()) as rig:
        large = io.BytesIO(b"{" + b" " * LARGEST_BYTES + b"}")
        async with rig.client.post(rig.url + WEBHOOK, data=large, headers=sign(b"", SECRET)) as response:
            assert response.status == 413

        async def pieces() -> object:
            for _ in range(LARGEST_BYTES // 2**16 + 2):
                yield b" " * 2**16

        sent = rig.client.post(rig.url + WEBHOOK, data=pieces(), headers=sign(b"", SECRET))
        async with sent as response:
            assert response.status == 413


async def test_a_webhook_that_is_cut_off_is_not_taken(tmp_path: Path) -> None:
    forge, actions = MemoryForge(), Actions()
    body = forge.delivery(7)
    async with run_service(tmp_path, forge, actions) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        lines = [f"POST {WEBHOOK} HTTP/1.1", "Host: forge", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in sign(body, SECRET).items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body[: len(body) // 2])
        await writer.drain()
        writer.write_eof()
        assert b" 202 " not in await reader.read()
        writer.close()
        assert not any(one.job.kind == "look" for one in await rig.service.queue.pending())
    assert actions.done == []


async def test_anything_else_is_not_found(tmp_path: Path) -> None:
    async with run_service(tmp_path, MemoryForge(), Actions()) as rig:
        found = {}
        for method, path in (
            *(("GET", "/"), ("POST", "/"), ("POST", "/gitops"), ("POST", f"{WEBHOOK}/..")),
            *(("GET", WEBHOOK), ("DELETE", WEBHOOK), ("POST", HEALTH), ("GET", HEALTH)),
        ):
            async with rig.client.request(method, rig.url + path) as response:
                found[(method, path)] = response.status
        assert list(found.values()) == [404, 404, 404, 404, 405, 405, 405, 200]


async def test_either_secret_is_taken_while_one_replaces_the_other(tmp_path: Path) -> None:
    forge = MemoryForge()
    body = forge.delivery(7)
    async with run_service(tmp_path, forge, Actions(), secrets=("new", "old")) as rig:
        assert (await rig.post(body, sign(body, "old", delivery="1")))[0] == 202
        assert (await rig.post(body, sign(body, "new", delivery="2")))[0] == 202
        assert (await rig.post(body, sign(body, "", delivery="3")))[0] == 401


async def test_a_store_that_is_away_is_told_to_the_forge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge, actions = MemoryForge(), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: "pulls open" in forge.calls)
        objects: Objects = rig.service.queue._objects  # type: ignore[attr-defined]

        def refuse(*args: object, **more: object) -> object:
            raise StoreError("The disk is gone.")

        with monkeypatch.context() as patch:
            patch.setattr(type(objects), "get", refuse)
            status, said = await rig.post(forge.delivery(7), delivery="d-5")
            assert (status, "disk" in said) == (503, False)
        forge.add_pull(7)
        # It is not taken for received: the forge sends it again.
        assert (await rig.post(forge.delivery(7), delivery="d-5"))[0] == 202
        await until(lambda: ("plan", 7) in actions.done)


async def test_a_webhook_is_answered_at_once_while_the_workers_are_busy(tmp_path: Path) -> None:
    forge, actions = MemoryForge(delay_s=0.05), Actions(work_s=0.2)
    for number in range(20):
        forge.add_pull(number + 1)
    async with run_service(tmp_path, forge, actions) as rig:
        await _warm_up(rig, forge)
        taken = []
        for number in range(20):
            began = time.monotonic()
            assert (await rig.post(forge.delivery(number + 1), delivery=f"busy-{number}"))[0] == 202
            taken.append(time.monotonic() - began)
    assert statistics.median(taken) < 0.1


async def _warm_up(rig: Rig, forge: MemoryForge) -> None:
    for number in range(3):
        await rig.post(forge.delivery(1), delivery=f"warm-{number}")


async def test_a_hundred_webhooks_at_once_are_all_taken(tmp_path: Path) -> None:
    forge, actions = MemoryForge(), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        for number in range(1, 101):
            forge.add_pull(number)
        posts = (rig.post(forge.delivery(number), delivery=f"d-{number}") for number in range(1, 101))
        assert {status for status, _ in await asyncio.gather(*posts)} == {202}
        await until(lambda: {number for _, number in actions.done} == set(range(1, 101)))


async def test_a_client_that_sends_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    forge = MemoryForge()
    async with run_service(tmp_path, forge, Actions()) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        for _, writer in slow:
            writer.write(f"POST {WEBHOOK} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx".encode())
        async with aiohttp.ClientSession() as client, client.get(rig.url + HEALTH) as response:
            assert response.status == 200
        assert (await rig.post(forge.delivery(7)))[0] == 202
        for _, writer in slow:
            writer.close()
