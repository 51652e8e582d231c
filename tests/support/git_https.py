"""A Git host that speaks HTTPS: it lists the refs of one repository to whoever has the token."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from pvelab.kubernetes.authority import Authority
from stackyard.base.serving import Tls, respond, serve

__all__ = ["HttpsGitHost", "serve_git_https"]


@dataclass(frozen=True, slots=True)
class HttpsGitHost:
    """A host that answers.

    Attributes:
        url: The address of the repository.
        authority_pem: The authority of its certificate.
        asked: The paths that it was asked for with the token.
    """

    url: str
    authority_pem: str
    asked: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def serve_git_https(repository: Path, username: str, token: str) -> AsyncIterator[HttpsGitHost]:
    """Serve what `git update-server-info` writes, as a plain web server does for git."""
    authority = Authority.make("forge")
    wanted = "Basic " + base64.b64encode(f"{username}:{token}".encode()).decode()
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != wanted:
            return respond(401, b"", headers={"WWW-Authenticate": 'Basic realm="git"'})
        asked.append(request.path)
        path = repository / ".git" / request.path.removeprefix("/home.git/")
        found = await asyncio.to_thread(lambda: path.read_bytes() if path.is_file() else None)
        return respond(404, b"") if found is None else respond(200, found, content_type="text/plain")

    tls = Tls(authority.issue_server(("127.0.0.1",)))
    async with serve(answer, bind="127.0.0.1", port=0, tls=tls) as server:
        yield HttpsGitHost(f"{server.url}/home.git", authority.certificate_pem.decode(), asked)
