"""A controller to test with: a site with specs of every posture, repositories, and clients that know it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from tests.support.processes import PATIENCE_S
from tests.support.repositories import commit, git, new_repository
from tests.support.site import KEY, KEY_2, SEED, TOKEN, write_site
from yarl import URL

from stackyard.controller import ControllerOptions, RunningController, controller
from stackyard.state.http.throttle import ThrottleLimits

__all__ = [
    "REPO_TOKEN",
    "Answer",
    "Asking",
    "asking",
    "git_clone",
    "git_fetch",
    "make_site",
    "repository",
    "running",
]

REPO_TOKEN = "token-of-the-repositories"
SITE_TOKEN = "site-token-value"

# Beside the specs of the seed: one of each posture, and each way in which one can be wrong.
SPECS = {
    "v2/specs/open.yaml": "schema_version: 1\naccess: {posture: dev}\n",
    "v2/specs/staged.yaml": "schema_version: 1\naccess: {posture: stage, users: [{name: ops, sudo: true}]}\n",
    "v2/specs/web.yaml": (
        "schema_version: 1\naccess: {posture: prod, users: [{name: ops, sudo: true, ssh_keys: [one]}]}\n"
        "platform: {packages: [nginx], services: {enable: [nginx], disable: [rpcbind]}}\n"
    ),
    "envs/shop.yaml": (
        "posture: prod\nnode: father\nvms:\n"
        "  - {name: web1, spec: web, image: debian-12, preset: small}\n"
        "  - {name: web2, spec: web, image: debian-12, preset: small}\n"
    ),
}
BROKEN = {
    "v2/specs/lost.yaml": "schema_version: 1\naccess: {posture: nowhere}\n",
    "v2/specs/keyless.yaml": "schema_version: 1\naccess: {users: [{name: a, ssh_keys: [none]}]}\n",
    "v2/specs/wrong.yaml": "schema_version: 1\nunknown: {}\n",
}
SECRETS = f"""\
api_tokens: {{pve: {TOKEN}, father: {TOKEN}}}
ssh_keys: {{one: {KEY}, two: {KEY_2}}}
auth:
  site_token: {SITE_TOKEN}
  node_tokens: {{test: node-token-of-test, web1: node-token-of-web1, web2: node-token-of-web2}}
"""


def make_site(folder: Path, *, is_broken: bool = False, **changed: str | None) -> Path:
    """Write the site in `site-config` of a folder."""
    files = {**SEED, **SPECS, **(BROKEN if is_broken else {}), "secrets.yaml": SECRETS}
    return write_site(folder / "site-config", files, **changed)


def repository(folder: Path, *, files: int = 3) -> Path:
    """Make a repository with committed, changed, untracked, ignored and secret files."""
    new_repository(folder)
    commit(folder, **{f"file{number}__txt": f"content {number}\n" for number in range(files)})
    (folder / ".gitignore").write_text("*.log\nignored/\n")
    (folder / "install.sh").write_text("#!/bin/sh\necho installed\n")
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "a file.txt").write_text("with a space\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "more")
    (folder / "install.sh").write_text("#!/bin/sh\necho changed\n")
    (folder / "new.txt").write_text("not committed\n")
    (folder / "debug.log").write_text("ignored\n")
    (folder / "secrets.yaml").write_text("password: hunter2hunter2\n")
    return folder


@contextlib.asynccontextmanager
async def running(site: Path, **options: Any) -> AsyncIterator[RunningController]:
    """Run a controller for a site on any free port of this machine."""
    chosen: dict[str, Any] = {"bind": "127.0.0.1", "port": 0, "repo_token": REPO_TOKEN, **options}
    if "throttle" not in chosen:
        # The many wrong tokens of a test come from one address.
        chosen["throttle"] = ThrottleLimits(failures=10_000, address_failures=100_000)
    async with controller(ControllerOptions(site=site, **chosen)) as found:
        yield found


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def document(self) -> Any:
        return orjson.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code of an error."""
        return self.status, self.document["error"]["code"]


class Asking:
    """A client of one controller that trusts its certificate and nobody else's."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def __call__(
        self, path: str, token: str | None = None, *, method: str = "GET", **more: Any
    ) -> Answer:
        headers = {**more.pop("headers", {})}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with self.session.request(
            # As it is: no dots are taken out, nothing is encoded.
            method,
            URL(f"{self.url}{path}", encoded=True),
            headers=headers,
            **more,
        ) as response:
            return Answer(response.status, await response.read(), dict(response.headers))


@contextlib.asynccontextmanager
async def asking(found: RunningController) -> AsyncIterator[Asking]:
    """Give a client."""
    context = ssl.create_default_context(cadata=found.certificate_pem.decode())
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    # Nobody gives up for being one of many.
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Asking(session, found.url)


async def git_clone(
    found: RunningController, place: Path, *options: str, token: str = REPO_TOKEN, **variables: str
) -> tuple[int, str]:
    """Clone `bootstrap` with the real git, which trusts this controller alone; return how it ended."""
    words = ("clone", "--quiet", *options, f"{found.url}/bootstrap.git", str(place))
    return await _git(found, place, words, token=token, **variables)


async def git_fetch(
    found: RunningController, place: Path, *options: str, token: str = REPO_TOKEN, **variables: str
) -> tuple[int, str]:
    """Fetch into a clone with the real git; return how it ended."""
    words = ("-C", str(place), "fetch", "--quiet", *options, "origin")
    return await _git(found, place, words, token=token, **variables)


async def _git(
    found: RunningController, place: Path, words: Sequence[str], *, token: str, **variables: str
) -> tuple[int, str]:
    authority = place.with_name(f"{place.name}.pem")
    authority.write_bytes(found.certificate_pem)
    environment = {
        **os.environ,
        "GIT_SSL_CAINFO": str(authority),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Bearer {token}",
        **variables,
    }
    process = await asyncio.create_subprocess_exec(
        *("git", *words), env=environment, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S * 4)
    assert process.returncode is not None
    return process.returncode, errors.decode()
