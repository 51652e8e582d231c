"""A controller in a process of its own, as users run it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked_server import ForkedServer, fork_server
from tests.support.processes import PATIENCE_S

__all__ = ["ControllerProcess", "serving_process"]


@dataclass
class ControllerProcess:
    """A running `stackyard serve`; `ready` is its ready line."""

    process: ForkedServer
    ready: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it, and return its status."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


@contextlib.asynccontextmanager
async def serving_process(
    site: Path, *options: str, open_files: int | None = None, **variables: str
) -> AsyncIterator[ControllerProcess]:
    """Run a controller on a free port for the length of the block; `open_files` limits its descriptors."""
    arguments = ("serve", "--json", "--site", str(site), *_port(options), *options)
    process = fork_server(*arguments, env={**os.environ, **variables})
    if open_files is not None:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (open_files, open_files))
    line = await asyncio.wait_for(process.readline(), PATIENCE_S)
    try:
        yield ControllerProcess(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _port(options: tuple[str, ...]) -> tuple[str, ...]:
    return () if "--port" in options else ("--port", "0", "--bind", "127.0.0.1")
