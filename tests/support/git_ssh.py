"""A Git host that speaks SSH: it serves one folder of repositories to whoever has the deploy key."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

__all__ = ["GitHost", "serve_git", "serve_git_in_thread"]

_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class GitHost:
    """A host that answers.

    Attributes:
        port: Its port.
        known_hosts: Its key, as OpenSSH writes it.
        private_key: The deploy key that it accepts.
        fetched: The commands that it was asked for.
    """

    port: int
    known_hosts: str
    private_key: str = field(repr=False)
    fetched: list[str] = field(default_factory=list)

    def url(self, repository: Path) -> str:
        """Return the address of a repository."""
        return f"ssh://git@127.0.0.1:{self.port}{repository}"


async def _ask(process: asyncssh.SSHServerProcess[bytes], started: asyncio.subprocess.Process) -> None:
    assert started.stdin is not None
    while data := await process.stdin.read(_CHUNK):
        started.stdin.write(data)
        await started.stdin.drain()
    started.stdin.close()


@contextlib.asynccontextmanager
async def serve_git() -> AsyncIterator[GitHost]:
    """Serve every repository of this machine by its path, to one deploy key."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    deploy_key = asyncssh.generate_private_key("ssh-ed25519")
    fetched: list[str] = []

    async def answer(process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        fetched.append(command)
        program, _, path = command.partition(" ")
        if program != "git-upload-pack":
            process.exit(1)
            return
        started = await asyncio.create_subprocess_exec(
            "git",
            "upload-pack",
            path.strip("'"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        asking = asyncio.create_task(_ask(process, started))
        assert started.stdout is not None
        while data := await started.stdout.read(_CHUNK):
            process.stdout.write(data)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        process.exit(await started.wait())

    keys = asyncssh.import_authorized_keys(deploy_key.export_public_key().decode())
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=keys,
        process_factory=answer,
        encoding=None,
    )
    try:
        port = server.get_port()
        public = host_key.export_public_key().decode().strip()
        yield GitHost(
            port=port,
            known_hosts=f"[127.0.0.1]:{port} {public}\n",
            private_key=deploy_key.export_private_key().decode(),
            fetched=fetched,
        )
    finally:
        server.close()
        await server.wait_closed()


@contextlib.contextmanager
def serve_git_in_thread() -> Iterator[GitHost]:
    """Serve as `serve_git` does, for a block that is no coroutine."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = serve_git()
    try:
        yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
