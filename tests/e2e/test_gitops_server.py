"""`stackyard gitops serve` beside a real Gitea: webhooks in, comments and applies out, and a kill between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.gitops_rig import GitopsRig, open_gitops, stack
from tests.support.ports import free_port

from stackyard.clients.forge.model import CommitState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

SECRET = "a-secret-of-more-than-sixteen"
PATIENCE_S = 120.0


@contextlib.asynccontextmanager
async def serving(yard: GitopsRig, folder: Path, port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Run the server in its folder until the end of the block."""
    control = folder / "control"
    control.mkdir(exist_ok=True)
    url = f"http://127.0.0.1:{port}/gitops/webhook"
    place = ["--forge", "gitea", "--url", yard.rig.server.url, "--repository", yard.rig.repository]
    words = ["gitops", "serve", *place, "--port", str(port), "--webhook-url", url, "--json"]
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "stackyard", *words],
            cwd=control,
            stdout=subprocess.PIPE,
            stderr=log,
            env={
                **os.environ,
                "STACKYARD_FORGE_TOKEN": yard.rig.users["bot"].token,
                "STACKYARD_GITOPS_WEBHOOK_SECRET": SECRET,
            },
        )
    assert process.stdout is not None
    try:
        ready = json.loads(await asyncio.to_thread(process.stdout.readline))
        assert ready["webhook"] == url
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
        process.stdout.close()


async def until(is_true: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not await is_true():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def shows(yard: GitopsRig, number: int, words: str) -> bool:
    return any(words in one.body for one in await yard.our_comments(number))


async def test_a_server_plans_what_is_pushed_obeys_comments_and_applies_what_is_merged(
    tmp_path: Path,
) -> None:
    async with open_gitops(tmp_path, {"stacks/web/main.tf": stack()}) as yard:
        async with serving(yard, tmp_path, free_port()):
            pull = await yard.open_pull("more", {"stacks/web/main.tf": stack("one", "two")})
            began = time.monotonic()

            async def has_status() -> bool:
                return "stackyard" in await yard.statuses(pull.number)

            await until(has_status)
            first_status_s = time.monotonic() - began
            await until(lambda: shows(yard, pull.number, "2 to create"))
            await yard.say(pull.number, "stackyard help")
            await until(lambda: shows(yard, pull.number, "stackyard allow destroy NAME"))
            await yard.approve(pull.number)

            async def is_green() -> bool:
                return (await yard.statuses(pull.number)).get("stackyard") is CommitState.SUCCESS

            await until(is_green)
            await yard.merge(pull.number)
            await until(lambda: shows(yard, pull.number, "applied: 2 created"))
        # The aim is one second; two busy cores get more.
        assert first_status_s < 20
        log = (tmp_path / "server.log").read_text()
        assert SECRET not in log
        assert yard.rig.users["bot"].token not in log


async def test_a_server_that_is_killed_is_continued_and_what_came_meanwhile_is_found(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {"stacks/web/main.tf": stack()}) as yard:
        port = free_port()
        async with serving(yard, tmp_path, port) as process:
            pull = await yard.open_pull("more", {"stacks/web/main.tf": stack("one")})

            async def has_begun() -> bool:
                return "stackyard" in await yard.statuses(pull.number)

            await until(has_begun)
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        # Nobody listens: Gitea's webhooks of this get no answer.
        missed = await yard.open_pull("other", {"stacks/db/main.tf": stack("three")})
        async with serving(yard, tmp_path, port):
            await until(lambda: shows(yard, pull.number, "1 to create"))
            await until(lambda: shows(yard, missed.number, "1 to create"))
        assert len(await yard.our_comments(pull.number)) == 1
