"""Redirects of what a lab downloads: each hop has to pass what the first address has to pass."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from pvelab.server.problems import PveError
from pvelab.world.storage import download
from pvelab.world.storage.download import Fetcher


@contextlib.asynccontextmanager
async def redirecting(**to: str) -> AsyncIterator[str]:
    """Serve redirects by name, and the bytes of an image at /image; give the address."""

    async def handle(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name == "image":
            return web.Response(body=b"image")
        return web.Response(
            status=302, headers={"Location": to[name].replace("BASE", str(request.url.origin()))}
        )

    app = web.Application()
    app.router.add_route("*", "/{name}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def get(tmp_path: Path, to: str, *, anywhere: bool = False) -> bytes:
    async def fetch() -> bytes:
        async with redirecting(first=to) as base:
            await Fetcher(anywhere=anywhere).head(f"{base}/first")
            await Fetcher(anywhere=anywhere).get(f"{base}/first", tmp_path / "file")
            return (tmp_path / "file").read_bytes()

    return asyncio.run(fetch())


@pytest.mark.parametrize("to", ["/image", "image", "BASE/image"])
def test_a_redirect_on_this_machine_is_followed(tmp_path: Path, to: str) -> None:
    assert get(tmp_path, to) == b"image"


@pytest.mark.parametrize(
    "to",
    [
        "http://198.51.100.1/image",
        "https://images.example.org/image",
        "http://169.254.169.254/latest/meta-data/",
        "//198.51.100.1/image",
        "file:///etc/passwd",
        "ftp://127.0.0.1/image",
        "http://user:password@127.0.0.1/image",
        "http://[::1",
    ],
)
def test_a_redirect_to_anywhere_else_is_refused(tmp_path: Path, to: str) -> None:
    with pytest.raises(PveError, match="a redirect leads to an address that the lab does not ask"):
        get(tmp_path, to)
    assert not (tmp_path / "file").exists()


def test_a_circle_of_redirects_ends(tmp_path: Path) -> None:
    with pytest.raises(PveError, match="20 redirections exceeded"):
        get(tmp_path, "/first")


def test_a_server_elsewhere_cannot_lead_back_to_this_machine() -> None:
    fetcher = Fetcher(anywhere=True)
    assert fetcher._next("http://198.51.100.1/a", "http://198.51.100.2/b") == "http://198.51.100.2/b"
    for to in ("http://127.0.0.1:8006/", "http://localhost/", "http://[::1]/"):
        with pytest.raises(PveError):
            fetcher._next("http://198.51.100.1/a", to)
    with pytest.raises(PveError):
        fetcher._next("https://198.51.100.1/a", "http://198.51.100.1/a")


def test_a_download_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_LARGEST_BYTES", 3)
    with pytest.raises(PveError, match="over 3 bytes"):
        get(tmp_path, "/image")
