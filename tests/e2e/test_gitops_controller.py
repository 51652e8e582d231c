"""Webhooks at the controller: `stackyard serve --gitops` takes them, also while the forge is down."""

from __future__ import annotations

from pathlib import Path

import aiohttp
from tests.support.controller import make_site
from tests.support.controller_process import serving_process
from tests.support.memory_forge import MemoryForge, sign
from tests.support.ports import free_port

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
