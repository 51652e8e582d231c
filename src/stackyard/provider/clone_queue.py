"""Clones onto one storage, one after the other: its lock on Proxmox times out when many wait for it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["CloneQueue"]


class CloneQueue:
    """The clones that wait for their turn, by node and storage; one for all kinds of guests of a session."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, node: str, storage: str) -> AsyncIterator[None]:
        """Wait until no other clone goes to this storage of a node, and hold it for the block."""
        async with self._turns.setdefault((node, storage), asyncio.Lock()):
            yield
