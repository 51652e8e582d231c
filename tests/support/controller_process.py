"""A controller in a process of its own, as users run it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked_server import ForkedServer, fork_server
from tests.support.processes import PATIENCE_S

from stackyard.base.serving import ServerLimits
from stackyard.controller import ControllerOptions, controller

__all__ = ["ControllerProcess", "patient_process", "serving_process"]


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
async def serving_process(site: Path, *options: str, **variables: str) -> AsyncIterator[ControllerProcess]:
    """Run a controller on a free port for the length of the block."""
    arguments = ("serve", "--json", "--site", str(site), *_port(options), *options)
    async with _ready(fork_server(*arguments, env={**os.environ, **variables})) as found:
        yield found


@contextlib.asynccontextmanager
async def patient_process(
    site: Path, *, repo_token: str, open_files: int | None = None
) -> AsyncIterator[ControllerProcess]:
    """Run a controller that gives a crowd on few cores time to connect; `open_files` is all it may have."""
    arguments = (str(site), repo_token, "" if open_files is None else str(open_files))
    async with _ready(fork_server(*arguments, entry=f"{__name__}:serve_patiently")) as found:
        yield found


@contextlib.asynccontextmanager
async def _ready(process: ForkedServer) -> AsyncIterator[ControllerProcess]:
    line = await asyncio.wait_for(process.readline(), PATIENCE_S)
    try:
        yield ControllerProcess(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def serve_patiently() -> None:
    """Be the controller of `patient_process`, until it is killed."""
    site, repo_token, open_files = sys.argv[1:]
    if open_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(open_files), int(open_files)))
    limits = ServerLimits(header_timeout_s=PATIENCE_S * 4, max_connections=4096)
    options = ControllerOptions(
        site=Path(site), bind="127.0.0.1", port=0, repos=True, repo_token=repo_token, limits=limits
    )

    async def run() -> None:
        async with controller(options) as found:
            print(json.dumps(found.document()), flush=True)  # noqa: T201 - its ready line
            await asyncio.Event().wait()

    asyncio.run(run())


def _port(options: tuple[str, ...]) -> tuple[str, ...]:
    return () if "--port" in options else ("--port", "0", "--bind", "127.0.0.1")
