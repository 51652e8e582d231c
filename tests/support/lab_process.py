"""A lab in a process of its own, as users run it: started, killed, started again on the same data."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked_server import ForkedServer, fork_server
from tests.support.processes import PATIENCE_S

__all__ = ["LabProcess", "start_lab"]


@dataclass
class LabProcess:
    """A running `stackyard lab up --foreground`; `ready` is its ready line."""

    process: ForkedServer
    ready: dict[str, Any]

    async def kill(self) -> None:
        """End it the hard way, in the middle of whatever it does."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


async def start_lab(data: Path, *options: str) -> LabProcess:
    """Start a lab on a data folder and return when it is ready."""
    process = fork_server(
        *("lab", "up", "--foreground", "--json", "--port", "0", "--data", str(data), *options)
    )
    line = await asyncio.wait_for(process.readline(), PATIENCE_S)
    return LabProcess(process, json.loads(line))
