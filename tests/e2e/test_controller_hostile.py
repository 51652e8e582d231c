"""Clients that mean no good: malformed HTTP, half a handshake, paths that climb, questions at random."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.controller import REPO_TOKEN, Asking, asking, make_site, repository, running
from tests.support.processes import PATIENCE_S

from stackyard.base.serving import ServerLimits
from stackyard.controller import RunningController
from stackyard.controller.openapi import openapi

# What must never be in any answer: a line of each file that is not served.
LEAKS = (b"hunter2", b"root:x:0:0", b"PRIVATE KEY", b"node-token-of", b"site-token-value", b"OUTSIDE")


@contextlib.asynccontextmanager
async def attacked(tmp_path: Path, **options: Any) -> AsyncIterator[RunningController]:
    """Run a controller with secrets all around what it serves."""
    source = repository(tmp_path / "bootstrap")
    (tmp_path / "outside.txt").write_text("OUTSIDE\n")
    (source / "up").symlink_to("..")
    (source / "passwd").symlink_to("/etc/passwd")
    async with running(make_site(tmp_path), repos=True, **options) as found:
        yield found


async def connect(found: RunningController) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=found.certificate_pem.decode())
    return await asyncio.open_connection("127.0.0.1", found.port, ssl=context, server_hostname="localhost")


async def sent(found: RunningController, data: bytes) -> bytes:
    """Send bytes as they are, and return all that comes until the server closes."""
    reader, writer = await connect(found)
    writer.write(data)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        answer = await asyncio.wait_for(reader.read(-1), PATIENCE_S)
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
    return answer


def raw_request(path: str) -> bytes:
    """Return a request whose path nobody has normalised."""
    head = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {REPO_TOKEN}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1")


CLIMBS = [
    f"/bootstrap.git/{place}{climb}{target}"
    for place in ("", "objects/", "objects/pack/", "refs/", "info/", "deep/er/")
    for climb in (
        *(
            "../../",
            "../../../../../../../",
            "./../",
            "..//",
            "%2e%2e/%2e%2e/",
            "%2E%2E%2F%2E%2E%2F",
            "..%2f..%2f",
        ),
        *(
            "%252e%252e%252f",
            "..%255c",
            "..\\..\\",
            "%5c..%5c",
            "..%00/",
            "%c0%ae%c0%ae/",
            "%uff0e%uff0e/",
            "up/",
        ),
        *("\xe0\x80\xae/", "....//", "/", "//", "passwd/../"),
    )
    for target in ("etc/passwd", "site-config/secrets.yaml")
]


async def test_no_path_leads_out_of_a_repository(tmp_path: Path) -> None:
    async with attacked(tmp_path) as found:
        slots = asyncio.Semaphore(40)

        async def climb(path: str) -> None:
            async with slots:
                answer = await sent(found, raw_request(path))
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404")), (path, answer[:80])
            assert not [leak for leak in LEAKS if leak in answer], path

        await asyncio.gather(*(climb(path) for path in CLIMBS))


ELSEWHERE = [
    *("/../site-config/secrets.yaml", "//etc/passwd", "/spec/../../secrets", "/spec/..%2fsecrets"),
    *(
        "/bootstrap.git.git/x",
        "/..git/HEAD",
        "/%2e%2e.git/HEAD",
        "/site-config/secrets.yaml",
        "/state/../secrets",
    ),
    *(
        "/bootstrap.git/passwd",
        "/bootstrap.git/up",
        "/bootstrap.git/up/outside.txt",
        "/specs%00",
        "/spec/web1%00",
    ),
    *("/bootstrap%2egit/../x", "/bootstrap.git%2fHEAD", "http://127.0.0.1/../etc/passwd", "*", "/\x7f"),
]


async def test_no_other_path_leads_anywhere_either(tmp_path: Path) -> None:
    async with attacked(tmp_path) as found:
        for path in ELSEWHERE:
            answer = await sent(found, raw_request(path))
            assert answer[9:10] == b"4", (path, answer[:100])
            assert not [leak for leak in LEAKS if leak in answer], path


MALFORMED = {
    "nothing of HTTP": b"\x00\x01\x02\x03\r\n\r\n",
    "only line breaks": b"\r\n" * 100 + b"GET / HTTP/1.1\r\n\r\n",
    "a version of its own": b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx",
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "a broken chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a header without a name": b"GET /health HTTP/1.1\r\n: x\r\n\r\n",
    "a folded header": b"GET /health HTTP/1.1\r\nHost: x\r\n y: z\r\n\r\n",
    "a zero in a header": b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    "a method that nobody knows": b"STEAL /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a huge header": b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(5000)) + b"\r\n",
}


@pytest.mark.parametrize("what", MALFORMED)
async def test_malformed_http_is_refused_and_the_next_client_served(tmp_path: Path, what: str) -> None:
    async with running(make_site(tmp_path)) as found, asking(found) as client:
        answer = await sent(found, MALFORMED[what])
        assert answer == b"" or answer[9:10] == b"4", answer[:200]
        assert (await client("/health")).status == 200


async def test_silent_and_half_open_clients_delay_nobody(tmp_path: Path) -> None:
    """Some never begin the handshake, some stop in the middle of it, some in the middle of a request."""

    limits = ServerLimits(max_connections=400)
    async with running(make_site(tmp_path), limits=limits) as found, asking(found) as client:
        held = []
        for number in range(60):
            sock = socket.create_connection(("127.0.0.1", found.port))
            if number % 2:
                # The first bytes of a TLS handshake, which then never goes on.
                sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            held.append(sock)
        slow = [await connect(found) for _ in range(30)]
        for _, writer in slow:
            writer.write(b"GET /spec/web1 HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        answers = await asyncio.wait_for(asyncio.gather(*(client("/health") for _ in range(100))), PATIENCE_S)
        assert {answer.status for answer in answers} == {200}
        for sock in held:
            sock.close()
        for _, writer in slow:
            writer.transport.abort()


async def test_a_client_that_does_not_read_its_clone_delays_nobody(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")
    (source / "large.bin").write_bytes(bytes(range(256)) * 40_000)
    async with running(make_site(tmp_path), repos=True) as found, asking(found) as client:
        silent = [await connect(found) for _ in range(20)]
        for _, writer in silent:
            writer.write(raw_request("/bootstrap.git/large.bin"))
        answer = await asyncio.wait_for(client("/bootstrap.git/large.bin", REPO_TOKEN), PATIENCE_S)
        assert len(answer.body) == 256 * 40_000
        assert (await client("/bootstrap.git/install.sh", REPO_TOKEN)).status == 200
        for _, writer in silent:
            writer.transport.abort()


DOCUMENT = openapi()
ERROR = jsonschema_rs.validator_for(DOCUMENT["components"]["schemas"]["Error"])
WORDS = st.one_of(
    st.sampled_from(
        [
            "web1",
            "base",
            "staged",
            "nobody",
            "bootstrap",
            "HEAD",
            "objects",
            "..",
            ".",
            "%2e%2e",
            "%00",
            "install.sh",
            "",
        ]
    ),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters=" ?#"), max_size=12),
    st.binary(max_size=6).map(urllib.parse.quote_from_bytes),
)
TOKENS = st.sampled_from([None, "", "wrong", REPO_TOKEN, "site-token-value", "a.b", "Ä", "x" * 5000])


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, str, str, str | None]:
    """Return a template of the document, the path made of it, a method and a token."""
    template = draw(st.sampled_from(sorted(DOCUMENT["paths"])))
    path = template
    for name in ("identity", "repo", "path"):
        while f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", draw(WORDS), 1)
    query = draw(
        st.sampled_from(["", "?format=shell", "?format=x", "?service=git-upload-pack", "?service=", "?&&="])
    )
    method = draw(st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE"]))
    return template, path + query, method, draw(TOKENS)


async def test_questions_at_random_are_answered_as_the_document_says(tmp_path: Path) -> None:
    """No 5xx, no leak, no status that the document does not name, every error in its one form."""

    async def check(client: Asking, asked: tuple[str, str, str, str | None]) -> None:
        template, path, method, token = asked
        data = b"0011command=x0000" if method == "POST" else None
        headers = {"Content-Type": "application/x-git-upload-pack-request"} if data else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        answer = await client(path, method=method, data=data, headers=headers)
        assert answer.status < 500, (path, answer)
        assert not [leak for leak in LEAKS if leak in answer.body]
        operation = DOCUMENT["paths"][template].get(method.lower() if method != "HEAD" else "get")
        # What is filled in may turn one path into another, or into none.
        known = {int(status) for status in operation["responses"]} if operation else {405}
        assert answer.status in known | {200, 400, 401, 403, 404, 405, 413, 415}, (
            path,
            method,
            answer.status,
        )
        if answer.status >= 400 and method != "HEAD" and answer.body.startswith(b"{"):
            ERROR.validate(answer.document)

    async with attacked(tmp_path) as found, asking(found) as client:
        loop = asyncio.get_running_loop()

        @settings(max_examples=250, suppress_health_check=list(HealthCheck))
        @given(questions())
        def fuzz(asked: tuple[str, str, str, str | None]) -> None:
            asyncio.run_coroutine_threadsafe(check(client, asked), loop).result(PATIENCE_S)

        await asyncio.to_thread(fuzz)


async def test_bytes_at_random_never_bring_it_down(tmp_path: Path) -> None:
    async def check(found: RunningController, data: bytes) -> None:
        answer = await sent(found, data + b"\r\n\r\nGET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"HTTP/1.1 5" not in answer

    async def check_all(found: RunningController, many: list[bytes]) -> None:
        await asyncio.gather(*(check(found, data) for data in many))

    async with running(make_site(tmp_path)) as found, asking(found) as client:
        loop = asyncio.get_running_loop()

        # A refused client is given a second to read why; so they come twenty at a time.
        @settings(max_examples=6, suppress_health_check=list(HealthCheck))
        @given(st.lists(st.binary(max_size=300), min_size=20, max_size=20))
        def fuzz(many: list[bytes]) -> None:
            asyncio.run_coroutine_threadsafe(check_all(found, many), loop).result(PATIENCE_S)

        await asyncio.to_thread(fuzz)
        assert (await client("/health")).status == 200
