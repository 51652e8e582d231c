"""Guests without a sandbox: no program runs; a fixed set of commands is answered, the rest refused."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from pvelab.machines.machine import Endpoint, Kind

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping

    from pvelab.machines.machine import Execution, Streams
    from pvelab.ssh.accounts import Account

__all__ = ["RecordedMachine"]


class RecordedMachine:
    """The inside of one guest.

    Args:
        accounts: Tells who can log in.
        texts: Tells the handful of files that there are, by path.
        run: Answers a command.
        host_keys: Tells the private host keys that the guest was given.
    """

    def __init__(
        self,
        *,
        accounts: Callable[[], Mapping[str, Account]],
        texts: Callable[[], Mapping[str, str]],
        run: Callable[[Execution, Streams], Awaitable[int]],
        host_keys: Callable[[], tuple[str, ...]],
    ) -> None:
        self._accounts = accounts
        self._texts = texts
        self._run = run
        self._host_keys = host_keys

    @property
    def kind(self) -> Kind:
        """Records only."""
        return Kind.RECORDED

    async def boot(self) -> None:
        """Do nothing: there is nothing to start."""

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Answer one of the commands that are known."""
        return await self._run(wanted, streams)

    async def read_file(self, path: str, limit: int) -> bytes:
        """Return one of the few files."""
        found = self._texts().get(path)
        if found is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found.encode()[:limit]

    async def write_file(self, path: str, content: bytes) -> None:
        """Refuse: nothing can be written."""
        del content
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    async def users(self) -> tuple[str, ...]:
        """Return the users of its cloud-init."""
        return tuple(self._accounts())

    async def authorized_keys(self, user: str) -> tuple[str, ...]:
        """Return the keys of a user."""
        account = self._accounts().get(user)
        return () if account is None else account.keys

    async def accepts_password(self, user: str, password: str) -> bool:
        """Compare with what cloud-init was told."""
        account = self._accounts().get(user)
        return account is not None and account.fits(password)

    async def host_keys(self) -> tuple[str, ...]:
        """Return the keys that cloud-init was given."""
        return self._host_keys()

    async def endpoint(self, port: int) -> Endpoint | None:
        """Return nothing: the lab itself answers port 22."""
        del port
        return None

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Refuse: nothing listens."""
        del port, source
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    async def stop(self) -> None:
        """Do nothing."""

    async def kill(self) -> None:
        """Do nothing."""
