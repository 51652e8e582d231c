"""A state service in a process of its own, as users run it: started, killed, started again on its data."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked_server import ForkedServer, fork_server
from tests.support.processes import PATIENCE_S

__all__ = ["StateProcess", "start_service"]


@dataclass
class StateProcess:
    """A running `stackyard state serve`; `ready` is its ready line."""

    process: ForkedServer
    ready: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    async def kill(self) -> None:
        """End it the hard way, in the middle of whatever it does."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> int:
        """End it as a service manager does, and return its status."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


async def start_service(
    *options: str,
    data: Path | None = None,
    environment: Mapping[str, str] | None = None,
    largest_bytes: int | None = None,
) -> StateProcess:
    """Start a service on any free port and return when it is ready; `largest_bytes` limits its files."""
    where = () if data is None else ("--data", str(data))
    arguments = ("state", "serve", "--json", "--port", "0", *where, *options)
    process = fork_server(*arguments, env={**os.environ, **(environment or {})})
    if largest_bytes is not None:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest_bytes, largest_bytes))
    line = await asyncio.wait_for(process.readline(), PATIENCE_S)
    return StateProcess(process, json.loads(line))
