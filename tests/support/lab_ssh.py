"""An SSH client for a lab in tests: `async with ssh_to(api) as ssh: await said(ssh, "hostname")`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncssh
from tests.support.lab import LabClient

__all__ = ["TRY_SUDO", "as_bash", "said", "ssh_to"]

# What the bpg provider puts before its scripts.
TRY_SUDO = (
    'export TRY_SUDO_USE_SUDO=0; set -e; _check(){ if [ -z "${_cached:-}" ]; then '
    '_use="${TRY_SUDO_USE_SUDO:-0}"; _cached=1; fi; }; try_sudo(){ _check; if [ "$_use" = "1" ]; then '
    'sudo "$@"; else "$@"; fi; }; '
)

# Nothing of the developer's own keys, agent or settings.
OWN = {"config": None, "known_hosts": None, "client_keys": None, "agent_path": None, "client_host_keys": None}


@contextlib.asynccontextmanager
async def ssh_to(
    api: LabClient, node: str | None = None, **options: Any
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Connect to a node (the first one if None), as root with the password unless told otherwise."""
    port = api.running.ssh_port if node is None else api.running.ssh_ports[node]
    chosen = {**OWN, "username": "root", "password": api.running.password, **options}
    async with asyncssh.connect("127.0.0.1", port, **chosen) as connection:
        yield connection


async def said(
    connection: asyncssh.SSHClientConnection, command: str, stdin: bytes = b""
) -> tuple[int | None, str, str]:
    """Run a command; return its exit status and what it wrote on each output."""
    done = await connection.run(command, input=stdin, encoding=None)
    out, err = (data if isinstance(data, bytes) else b"" for data in (done.stdout, done.stderr))
    return done.exit_status, out.decode(), err.decode()


def as_bash(script: str) -> str:
    """Wrap a script as the provider does."""
    quoted = script.replace("'", "'\"'\"'")
    return f"/bin/bash -c '{quoted}'"
