"""The floor of a server: a bare aiohttp route over TLS, in a process of its own.

`python -m bench.bare_server` prints its port when it is ready. A request for `/N` is answered with N bytes
of JSON, whatever the method; its body is read and thrown away.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
from pathlib import Path

from aiohttp import web

from stackyard.base.serving import make_certificate

__all__: list[str] = []


async def main() -> None:
    """Serve until killed."""
    bodies: dict[str, bytes] = {}

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        body = bodies.get(request.path)
        if body is None:
            size = int(request.path.removeprefix("/"))
            body = bodies[request.path] = b'{"data":"' + b"x" * (size - 11) + b'"}'
        return web.Response(body=body, content_type="application/json")

    server = web.Server(answer, access_log=None)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(server, "127.0.0.1", 0, ssl=_context())
    sys.stdout.write(f"{listening.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await listening.serve_forever()


def _context() -> ssl.SSLContext:
    certificate = make_certificate(["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(certificate.certificate_pem + certificate.key_pem)
        context.load_cert_chain(path)
    return context


if __name__ == "__main__":
    asyncio.run(main())
