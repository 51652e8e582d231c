"""Webhooks while the forge is down: the controller and the GitOps server take them, and no kill loses one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
from tests.support.controller import make_site
from tests.support.controller_process import serving_process
from tests.support.memory_forge import MemoryForge, sign
from tests.support.ports import free_port

from stackyard.clients.objects import open_objects
from stackyard.gitops.queue.stored import StoredQueue

SECRET = "a-secret-of-more-than-sixteen"
WEBHOOK = "/gitops/webhook"


async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    connector = aiohttp.TCPConnector(ssl=False)
    async with (
        aiohttp.ClientSession(connector=connector) as client,
        client.post(url + WEBHOOK, data=body, headers=headers) as response,
    ):
        return response.status


async def test_the_controller_takes_webhooks_while_the_forge_is_down(tmp_path: Path) -> None:
    site, body = make_site(tmp_path / "site-config"), MemoryForge().delivery(7)
    variables = {
        "STACKYARD_FORGE": "gitea",
        "STACKYARD_FORGE_URL": f"http://127.0.0.1:{free_port()}",
        "STACKYARD_FORGE_REPOSITORY": "home/infra",
        "STACKYARD_FORGE_TOKEN": "token-of-the-bot",
        "STACKYARD_GITOPS_WEBHOOK_SECRET": SECRET,
    }
    async with serving_process(site, "--gitops", **variables) as found:
        assert await post(found.url, body, sign(body, "another-secret-of-sixteen")) == 401
        assert await post(found.url, body, sign(body, SECRET, delivery="d-1")) == 202
        assert await post(found.url, body, sign(body, SECRET, delivery="d-1")) == 200
        assert await found.stop() == 0
    async with serving_process(site, "--gitops", **variables) as found:
        assert await post(found.url, body, sign(body, SECRET, delivery="d-1")) == 200


async def test_a_controller_without_gitops_has_nothing_there(tmp_path: Path) -> None:
    site, body = make_site(tmp_path / "site-config"), MemoryForge().delivery(7)
    async with serving_process(site) as found:
        # As for everything that it does not know.
        assert await post(found.url, body, sign(body, SECRET)) == 405


async def test_a_webhook_that_was_answered_survives_a_kill_before_its_run(tmp_path: Path) -> None:
    body, port = MemoryForge().delivery(7), free_port()
    words = ["--forge", "gitea", "--url", f"http://127.0.0.1:{free_port()}", "--repository", "home/infra"]

    async def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "stackyard", "gitops", "serve", *words, "--port", str(port), "--json"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "XDG_DATA_HOME": str(tmp_path / "data"),
                "STACKYARD_FORGE_TOKEN": "token-of-the-bot",
                "STACKYARD_GITOPS_WEBHOOK_SECRET": SECRET,
            },
        )
        assert process.stdout is not None
        assert b'"webhook"' in await asyncio.to_thread(process.stdout.readline)
        return process

    url = f"http://127.0.0.1:{port}"
    first = await start()
    # The forge does not answer: nothing of it can be done before the kill.
    assert await post(url, body, sign(body, SECRET, delivery="d-1")) == 202
    first.kill()
    await asyncio.to_thread(first.communicate)
    with contextlib.closing(open_objects(tmp_path / "data" / "stackyard" / "state")) as objects:
        waiting = await StoredQueue(objects, "home/infra").pending()
    assert {"number": 7} in [one.job.args for one in waiting]
    second = await start()
    assert await post(url, body, sign(body, SECRET, delivery="d-1")) == 200
    second.terminate()
    _, said = await asyncio.to_thread(second.communicate)
    assert b"token-of-the-bot" not in said
