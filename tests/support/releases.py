"""A real HTTP server of release archives that can also behave badly, and the archives to put on it."""

from __future__ import annotations

import hashlib
import http.server
import io
import socket
import struct
import tarfile
import threading
import zipfile
from collections.abc import Callable
from typing import Any

from tests.support.programs import LONG_S, engine_script

from stackyard.engine.tools.release import platform_name

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]

# Larger than any socket buffer, so that a part of it really is only a part.
PADDING_BYTES = 3_000_000


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients of these tests go away in the middle on purpose."""


class ReleaseServer:
    """Serves releases.

    Attributes:
        answers: What to do for each path.
        hits: The paths that were asked for, in order.
        stalled: Set once an answer has stopped in the middle.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.hits: list[str] = []
        self.stalled = threading.Event()
        self._released = threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.hits.append(self.path)
                server.answers.get(self.path, failing(404))(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/releases"

    def __enter__(self) -> ReleaseServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def publish(
        self,
        version: str,
        archive: bytes | None = None,
        *,
        sums: str | None = None,
        serve: Callable[[bytes], Answer] | None = None,
    ) -> None:
        """Put a release on the server.

        Args:
            version: Its version.
            archive: The zip; one with a program that works when absent.
            sums: The sums file; the true one when absent.
            serve: How the archive is sent; as a whole when absent.
        """
        body = good_archive(version) if archive is None else archive
        folder, name = f"/releases/v{version}", archive_name(version)
        listed = sums_of({name: body}) if sums is None else sums
        self.answers[f"{folder}/tofu_{version}_SHA256SUMS"] = whole(listed.encode())
        self.answers[f"{folder}/{name}"] = (serve or whole)(body)

    def stalling(self, body: bytes) -> Answer:
        """Return an answer that sends a half and then nothing more until the server stops."""

        def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
            _begin(handler, len(body))
            handler.wfile.write(body[: len(body) // 2])
            handler.wfile.flush()
            self.stalled.set()
            self._released.wait(LONG_S)

        return answer


def _begin(handler: http.server.BaseHTTPRequestHandler, length: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(length))
    handler.end_headers()


def whole(body: bytes) -> Answer:
    """Return an answer that sends everything."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        _begin(handler, len(body))
        handler.wfile.write(body)

    return answer


def truncated(body: bytes) -> Answer:
    """Return an answer that announces everything, sends a half and ends."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        _begin(handler, len(body))
        handler.wfile.write(body[: len(body) // 2])

    return answer


def dropped(body: bytes) -> Answer:
    """Return an answer that sends a half and then resets the connection."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        _begin(handler, len(body))
        handler.wfile.write(body[: len(body) // 2])
        handler.wfile.flush()
        # Lingering for no time at all makes the system send a reset in place of an orderly end.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    return answer


def hung_up(body: bytes) -> Answer:
    """Return an answer that closes the connection before any word."""
    del body
    return lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)


def failing(status: int) -> Answer:
    """Return an answer with an error status."""
    return lambda handler: handler.send_error(status)


def archive_name(version: str) -> str:
    """Return the name of this machine's archive."""
    return f"tofu_{version}_{platform_name()}.zip"


def program(version: str) -> bytes:
    """Return a program that says it is this version of OpenTofu, with padding to make it large."""
    return f"#!/bin/sh\n{engine_script(version)}\nexit 0\n".encode() + b"#" * PADDING_BYTES


def zipped(entries: dict[str, bytes]) -> bytes:
    """Return a zip archive, not compressed so that its size is that of what is in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def tarred(entries: dict[str, bytes]) -> bytes:
    """Return a tar archive with gzip."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=0) as archive:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def good_archive(version: str) -> bytes:
    """Return an archive as the project makes it."""
    return zipped({"LICENSE": b"text", "README.md": b"text", "tofu": program(version)})


def sums_of(files: dict[str, bytes]) -> str:
    """Return a sums file as the project makes it."""
    others = f"{'0' * 64}  tofu_other.zip\n"
    return others + "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
