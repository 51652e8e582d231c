"""The client of the image factory, against the lab's factory and servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from aiohttp import web

from stackyard import lab
from stackyard.base import serving
from stackyard.base.errors import ExitStatus
from stackyard.base.serving import respond
from stackyard.clients import factory
from stackyard.clients.factory import FactoryClient, FactoryLimits
from stackyard.talosapi.schematic import QEMU_GUEST_AGENT, Schematic, schematic_id

AGENT = Schematic(extensions=(QEMU_GUEST_AGENT,))
SHORT = FactoryLimits(connect_s=2.0, answer_s=0.2, stall_s=0.2, total_s=5.0, redirects=3, largest_bytes=2**22)
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@pytest.fixture(scope="module")
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve",), factory_port=0) as it:
        yield it


@contextlib.asynccontextmanager
async def against(
    handler: Handler, limits: FactoryLimits = SHORT
) -> AsyncIterator[tuple[FactoryClient, str]]:
    """Give a client of a server, and the address of that server."""
    async with (
        serving.serve(handler, bind="127.0.0.1", port=0) as server,
        FactoryClient(server.url, limits) as client,
    ):
        yield client, server.url


def image_url(base: str | None, schematic: Schematic = AGENT, name: str = "nocloud-amd64.iso") -> str:
    return f"{base}/image/{schematic_id(schematic)}/v1.12.1/{name}"


async def test_a_registered_schematic_has_images_of_a_known_size_and_hash(running: lab.Running) -> None:
    schematic = Schematic(extensions=("siderolabs/zfs",))
    url = image_url(running.factory_url, schematic)
    seen = bytearray()
    async with FactoryClient(f"{running.factory_url}/") as client:
        assert not await client.has_image(url)
        assert await client.post_schematic(schematic) == schematic_id(schematic)
        assert await client.has_image(url)
        digest = await client.download(url, lambda chunk, total: seen.extend(chunk))

    assert digest.sha256 == hashlib.sha256(seen).hexdigest()
    assert digest.size == len(seen)


async def test_versions_and_extensions_are_listed(running: lab.Running) -> None:
    async with FactoryClient(str(running.factory_url)) as client:
        assert "v1.12.1" in await client.list_versions()
        assert QEMU_GUEST_AGENT in await client.list_extensions("1.12.1")
        assert QEMU_GUEST_AGENT in await client.list_extensions("v1.12.1")


async def test_an_unknown_schematic_says_that_an_id_cannot_be_registered(running: lab.Running) -> None:
    url = image_url(running.factory_url, Schematic(extra_kernel_args=("unheard-of",)))
    async with FactoryClient(str(running.factory_url)) as client:
        with pytest.raises(factory.SchematicUnknownError, match="404") as caught:
            await client.download(url)

    assert "talos_schematic" in caught.value.remedy


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ("down", factory.FactoryUnreachableError, "broke the connection"),
        ("redirect-loop", factory.FactoryRedirectError, "more than 3 times"),
        ("half-download", factory.ImageIncompleteError, r"cut off after \d+ of \d+ bytes"),
        ("slow", factory.FactorySlowError, r"no answer after 0\.2 seconds"),
        ("wrong-bytes", factory.ImageContentError, "first bytes differ"),
    ],
)
async def test_a_fault_of_the_factory_is_named(
    running: lab.Running, how: str, error: type[factory.FactoryError], said: str
) -> None:
    url = image_url(running.factory_url, name="nocloud-amd64.qcow2")
    async with FactoryClient(str(running.factory_url), SHORT) as client:
        await client.post_schematic(AGENT)
        name = running.add_fault("factory", how=how, path="/image/*")
        try:
            with pytest.raises(error, match=said):
                await client.download(url)
        finally:
            running.remove_fault(name)


async def test_a_factory_that_is_not_there_is_unreachable() -> None:
    async with FactoryClient("http://127.0.0.1:1", SHORT) as client:
        with pytest.raises(factory.FactoryUnreachableError, match="Connection refused") as caught:
            await client.list_versions()

    assert caught.value.exit_status is ExitStatus.UNREACHABLE


@pytest.mark.parametrize(
    ("status", "word"), [(402, "enterprise"), (500, "later"), (503, "mirror"), (499, "")]
)
async def test_a_refusal_has_its_status_and_what_to_do(status: int, word: str) -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        return respond(status, b"no\x1b[31m way")

    async with against(refuse) as (client, url):
        with pytest.raises(factory.FactoryRefusedError, match=f"answered {status}.*way") as caught:
            await client.download(image_url(url))

    assert caught.value.status == status
    assert word in caught.value.remedy
    assert "\x1b" not in caught.value.detail


async def test_another_id_than_the_computed_one_is_refused() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return respond(201, b'{"id": "' + b"0" * 64 + b'"}')

    async with against(answer) as (client, _):
        with pytest.raises(factory.SchematicIdError, match=schematic_id(AGENT)):
            await client.post_schematic(AGENT)


async def test_what_is_no_factory_is_said_to_be_none() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, b"<html>welcome", content_type="text/html")

    async with against(answer) as (client, url):
        with pytest.raises(factory.FactoryError, match="no image factory"):
            await client.list_versions()
        with pytest.raises(factory.ImageContentError, match="text/html"):
            await client.download(image_url(url))


@pytest.mark.parametrize(
    ("body", "said"), [(b"", "0 bytes"), (b"<html>", "6 bytes"), (b"x" * 65536, "first bytes differ")]
)
async def test_bytes_that_are_no_image_are_refused(body: bytes, said: str) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, body, content_type="application/octet-stream")

    async with against(answer) as (client, url):
        with pytest.raises(factory.ImageContentError, match=said):
            await client.download(image_url(url))


async def test_a_stream_that_stalls_says_how_far_it_came() -> None:
    ended = asyncio.Event()

    async def stall(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100000"})
        await response.prepare(request)
        await response.write(b"x" * 1000)
        await ended.wait()
        return response

    async with against(stall) as (client, url):
        with pytest.raises(factory.FactorySlowError, match=r"nothing for 0\.2 seconds, after 1000 of 100000"):
            await client.download(image_url(url))
        ended.set()


async def test_an_image_that_is_too_large_is_refused_before_it_is_read() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(2**40)})
        await response.prepare(request)
        return response

    async with against(answer) as (client, url):
        with pytest.raises(factory.ImageContentError, match="which no image has"):
            await client.download(image_url(url))


async def test_a_mirror_below_a_path_is_asked_there() -> None:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(f"{request.method} {request.raw_path}")
        return respond(200, b'["v1.12.1"]')

    async with against(answer) as (_, url), FactoryClient(f"{url}/mirror/talos/", SHORT) as client:
        assert await client.list_versions() == ("v1.12.1",)

    assert asked == ["GET /mirror/talos/versions"]
