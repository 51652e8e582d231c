"""A shell of a node of a lab that is full of guests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from tests.support.lab import LabClient, lab_client
from tests.support.lab_ssh import said, ssh_to

from pvelab.machines.machine import Kind
from pvelab.seeds import load_seed

__all__ = ["Say", "with_shell"]

Say = Callable[..., Awaitable[tuple[int | None, str, str]]]


@contextlib.asynccontextmanager
async def with_shell(**options: Any) -> AsyncIterator[tuple[LabClient, Say]]:
    """Run a lab full of guests for a test, with a shell of its first node."""
    chosen = {"seed": load_seed("homelab"), "guests": Kind.RECORDED, "ssh_port": 0, **options}
    async with lab_client(**chosen) as api, ssh_to(api) as ssh:

        async def say(command: str, stdin: bytes = b"") -> tuple[int | None, str, str]:
            return await said(ssh, command, stdin)

        yield api, say
