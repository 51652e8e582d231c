"""Clients that mean harm, or are merely broken: what they send is refused, and the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient, lab_client
from tests.unit.base.serving.clients import PATIENCE_S, Client, Reply

from stackyard.base.serving import ServerLimits

# aiohttp warns of names of uploaded files that it cannot read; that is the client's doing.
pytestmark = pytest.mark.filterwarnings("ignore::aiohttp.multipart.BadContentDispositionHeader")

BOUNDARY = "----x"
MULTIPART = f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
UPLOAD = "/api2/json/nodes/pve1/storage/local/upload"
FIELD = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="content"\r\n\r\n'
FILE = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="filename"; filename="{{}}"\r\n\r\nbytes\r\n'


@contextlib.asynccontextmanager
async def connected(api: LabClient) -> AsyncIterator[Client]:
    """Connect to the lab with nothing in between."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", api.running.port, ssl=context)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def token(api: LabClient) -> str:
    return f"Authorization: PVEAPIToken={api.running.api_token}\r\n"


def with_lab(test: Callable[[LabClient], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with lab_client(**options) as api:
            await asyncio.wait_for(test(api), PATIENCE_S)
            # Whatever it was, the next client is served.
            assert (await api.get("/version"))["version"]

    asyncio.run(main())


def answered(path: str, *, method: str = "GET", headers: str = "", body: bytes = b"") -> Reply:
    """Send one request as it is written here, with root's token, and return what was answered."""
    replies: list[Reply] = []

    async def test(api: LabClient) -> None:
        async with connected(api) as client:
            length = f"Content-Length: {len(body)}\r\n" if body else ""
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{token(api)}{length}{headers}\r\n"
            await client.send(head.encode("latin-1") + body)
            replies.append(await client.reply())

    with_lab(test)
    return replies[0]


# --- Paths


@pytest.mark.parametrize(
    "path",
    [
        "/api2/json/../../../../etc/passwd",
        "/api2/json/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/../../etc/passwd",
        "/api2/../_lab/journal",
        "/api2/json/nodes/..%2f..%2fetc/status",
        "/api2/json/nodes/pve1%00/status",
        "/api2/json/nodes/pve1/storage/local/content/local:iso%2f..%2f..%2f..%2fetc%2fpasswd",
        "/api2/json/nodes/pve1/storage/local/content/local:snippets/../../../etc/passwd",
        "/api2/json/nodes/%c0%ae%c0%ae/status",
        "/api2/json/nodes/" + "x" * 9000 + "/status",
        "/api2/html/version",
        "/api2",
        "/",
        "*",
    ],
)
def test_a_path_that_leads_elsewhere_leads_nowhere(path: str) -> None:
    reply = answered(path)
    assert reply.status in (400, 403, 500, 501)
    assert b"root:" not in reply.body
    assert len(reply.status_line) < 8190


def test_a_line_break_in_a_path_does_not_become_a_header() -> None:
    reply = answered("/api2/json/nodes/pve1%0d%0aX-Injected:%201%0d%0a%0d%0abody/status")
    assert reply.status == 403
    assert "x-injected" not in reply.headers
    assert b"\\r\\nX-Injected" in reply.body


def test_doubled_and_trailing_slashes_change_nothing() -> None:
    assert answered("//api2//json///version//").status == 200


# --- Bodies


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "reason"),
    [
        ("POST", "Content-Length: 9999999999\r\n", b"", 501, "for data too large"),
        ("POST", "Content-Length: 524289\r\n", b"", 501, "for data too large"),
        ("DELETE", "Content-Length: 9999999999\r\n", b"", 501, "Unexpected content for method 'DELETE'"),
        (
            "POST",
            "Transfer-Encoding: chunked\r\n",
            b"3\r\na=b\r\n0\r\n\r\n",
            501,
            "chunked transfer encoding",
        ),
        ("POST", "Content-Length: -1\r\n", b"", 400, "Bad Request"),
        ("POST", "Content-Length: 3\r\nContent-Length: 4\r\n", b"a=b", 400, "Bad Request"),
        ("POST", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"a=b", 400, "Bad Request"),
    ],
)
def test_a_body_that_is_too_large_or_lies_is_refused_before_it_is_read(
    method: str, headers: str, body: bytes, status: int, reason: str
) -> None:
    async def test(api: LabClient) -> None:
        async with connected(api) as client:
            head = f"{method} /api2/json/pools HTTP/1.1\r\nHost: x\r\n{token(api)}{headers}\r\n"
            await client.send(head.encode() + body)
            reply = await client.reply()
            assert reply.status == status
            assert reply.reason.startswith(reason)
            assert reply.headers["connection"] == "close"

    with_lab(test)


@pytest.mark.parametrize(
    ("headers", "status"),
    [("X: " + "y" * 70_000 + "\r\n", 431), ("".join(f"X{n}: y\r\n" for n in range(200)), 431)],
)
def test_too_many_or_too_large_headers_are_refused(headers: str, status: int) -> None:
    assert answered("/api2/json/version", headers=headers).status == status


def test_json_that_is_nested_too_deep_is_refused() -> None:
    deep = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    reply = answered(
        "/api2/json/pools", method="POST", headers="Content-Type: application/json\r\n", body=deep
    )
    assert reply.status == 500
    assert reply.reason.startswith("malformed JSON string")


@pytest.mark.parametrize(
    "body",
    [
        "",
        FIELD,
        f"{FIELD}iso\r\n",
        f"{FIELD}iso\r\n--{BOUNDARY}--\r\n",
        f"{FIELD}iso\r\n{FILE.format('a.iso')}"[:-20],
        f"--{BOUNDARY}\r\nContent-Disp",
        f"--{BOUNDARY}\r\n\r\n--{BOUNDARY}--\r\n",
        "nothing of the kind",
    ],
)
def test_an_upload_that_is_cut_off_leaves_nothing(body: str, tmp_path: Path) -> None:
    async def test(api: LabClient) -> None:
        async with connected(api) as client:
            padded = (body or "-").encode()
            head = f"POST {UPLOAD} HTTP/1.1\r\nHost: x\r\n{token(api)}{MULTIPART}"
            await client.send(f"{head}Content-Length: {len(padded)}\r\n\r\n".encode() + padded)
            reply = await client.reply()
            assert (reply.status, reply.reason) == (501, "upload failed")
        assert list(tmp_path.glob("upload-*")) == []
        assert await api.get("/nodes/pve1/storage/local/content") == []

    with_lab(test, data=tmp_path)


def test_a_field_of_an_upload_may_not_be_larger_than_a_form() -> None:
    body = f"{FIELD}{'x' * 600_000}\r\n{FILE.format('a.iso')}--{BOUNDARY}--\r\n".encode()
    reply = answered(UPLOAD, method="POST", headers=MULTIPART, body=body)
    assert (reply.status, reply.reason) == (501, "for data too large")


@pytest.mark.parametrize("name", ["../../../evil.iso", "/etc/evil.iso", "..\\..\\evil.iso", "a/../evil.iso"])
def test_the_name_of_an_uploaded_file_is_a_name_and_no_path(name: str, tmp_path: Path) -> None:
    async def test(api: LabClient) -> None:
        body = f"{FIELD}iso\r\n{FILE.format(name)}--{BOUNDARY}--\r\n".encode()
        async with connected(api) as client:
            head = f"POST {UPLOAD} HTTP/1.1\r\nHost: x\r\n{token(api)}{MULTIPART}"
            await client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            reply = await client.reply()
        assert reply.status == 200
        found = [row["volid"] for row in await api.get("/nodes/pve1/storage/local/content")]
        assert len(found) == 1
        assert re.fullmatch(r"local:iso/[.]*evil[.]iso", found[0])
        assert [path.name for path in tmp_path.rglob("*") if "evil" in path.name] == []
        assert not (tmp_path.parent / "evil.iso").exists()

    with_lab(test, data=tmp_path / "data")


# --- Slow and silent clients


# The first one is for a whole TLS handshake too, on a busy machine.
SHORT = ServerLimits(header_timeout_s=1.0, body_timeout_s=0.3, idle_timeout_s=0.3, max_connections=8)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"GET /api2/json/version HTTP/1.1\r\nHost: x\r\n", 408),
        (b"POST /api2/json/access/ticket HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nuser", 408),
    ],
)
def test_a_client_that_stops_in_the_middle_is_let_go(sent: bytes, status: int | None) -> None:
    async def test(api: LabClient) -> None:
        async with connected(api) as client:
            await client.send(sent)
            assert (await api.get("/version"))["version"]
            if status is not None:
                assert (await client.reply()).status == status
            assert await client.rest() == b""

    with_lab(test, limits=SHORT)


def test_clients_that_say_nothing_keep_nobody_out() -> None:
    async def test(api: LabClient) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(20):
                await stack.enter_async_context(connected(api))
            assert (await api.get("/version"))["version"]

    with_lab(test, limits=ServerLimits(max_connections=8))


def test_a_client_that_goes_in_the_middle_of_its_call_does_not_stop_the_work() -> None:
    async def test(api: LabClient) -> None:
        async with connected(api) as client:
            body = b"poolid=made"
            head = f"POST /api2/json/pools HTTP/1.1\r\nHost: x\r\n{token(api)}Content-Length: {len(body)}"
            await client.send(f"{head}\r\n\r\n".encode() + body)
        while "made" not in {pool["poolid"] for pool in await api.get("/pools")}:
            await asyncio.sleep(0)

    with_lab(test)
