"""Locks that Proxmox waits for: a guest's configuration file, a storage. Each gives up after ten seconds.

The `lock` property of a guest (`lock: backup`) is another thing: it is part of the configuration, see
`guests`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pvelab.world.clock import LabClock

__all__ = ["LOCK_TIMEOUT_S", "Locks"]

LOCK_TIMEOUT_S = 10.0

_GUEST_FILES = {
    "qemu": "/var/lock/qemu-server/lock-{vmid}.conf",
    "lxc": "/run/lock/lxc/pve-config-{vmid}.lock",
}


@dataclass(slots=True)
class _HeldLock:
    """A lock that someone holds, and who waits for it; a shared one may have several holders."""

    holders: int = 0
    shared: bool = False
    waiting: deque[tuple[asyncio.Future[None], bool]] = field(default_factory=deque)


class Locks:
    """First come, first served; a free lock is taken without a pause."""

    def __init__(self, clock: LabClock) -> None:
        self._clock = clock
        self._held: dict[str, _HeldLock] = {}

    @contextlib.asynccontextmanager
    async def guest(
        self, kind: str, vmid: int, *, shared: bool = False, timeout_s: float = LOCK_TIMEOUT_S
    ) -> AsyncIterator[None]:
        """Hold the configuration file of a guest; shared is enough for who only reads it, as a clone does."""
        path = _GUEST_FILES[kind].format(vmid=vmid)
        text = f"can't lock file '{path}' - got timeout"
        async with self.hold(path, text, timeout_s, shared=shared):
            yield

    @contextlib.asynccontextmanager
    async def storage(self, storage: str, node: str | None) -> AsyncIterator[None]:
        """Hold a storage: on one node, or in the whole cluster where it is shared (node None)."""
        if node is None:
            key, text = f"storage-{storage}", f"cfs-lock 'storage-{storage}' error: got lock request timeout"
        else:
            path = f"/var/lock/pve-manager/pve-storage-{storage}"
            key, text = f"{node}:{path}", f"can't lock file '{path}' - got timeout"
        async with self.hold(key, text):
            yield

    @contextlib.asynccontextmanager
    async def hold(
        self, key: str, text: str, timeout_s: float = LOCK_TIMEOUT_S, *, shared: bool = False
    ) -> AsyncIterator[None]:
        """Hold any named lock.

        Raises:
            PveError: With the text, when the lock was not free in time.
        """
        await self._acquire(key, text, timeout_s, shared=shared)
        try:
            yield
        finally:
            self._release(key)

    def is_held(self, key: str) -> bool:
        """Return whether someone holds a lock."""
        return key in self._held

    async def _acquire(self, key: str, text: str, timeout_s: float, *, shared: bool) -> None:
        held = self._held.setdefault(key, _HeldLock())
        if not held.holders or (shared and held.shared and not held.waiting):
            held.holders += 1
            held.shared = shared
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        held.waiting.append((turn, shared))
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({turn, timer}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._leave(key, turn)
            raise
        finally:
            timer.cancel()
        if not turn.done():
            self._leave(key, turn)
            raise PveError(text)

    def _leave(self, key: str, turn: asyncio.Future[None]) -> None:
        """Step out of the queue; a turn that has come already is handed on."""
        if turn.done():
            self._release(key)
        else:
            turn.cancel()
            # Who comes after a leaver may share the lock with its present holders.
            self._admit(key)

    def _release(self, key: str) -> None:
        self._held[key].holders -= 1
        self._admit(key)

    def _admit(self, key: str) -> None:
        """Give the lock to the next in line, and to all behind who may share it with him."""
        held = self._held[key]
        while held.waiting:
            turn, shared = held.waiting[0]
            if not turn.done():
                if held.holders and not (shared and held.shared):
                    return
                held.holders += 1
                held.shared = shared
                turn.set_result(None)
            held.waiting.popleft()
        if not held.holders:
            del self._held[key]
