"""The inside of a guest without a shell: nothing to log in to, no programs, no files."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import Kind

if TYPE_CHECKING:
    import socket

    from pvelab.machines.machine import Execution, Streams

__all__ = ["NoInside"]


class NoInside:
    """What every Talos machine refuses."""

    @property
    def kind(self) -> Kind:
        """Records only."""
        return Kind.RECORDED

    async def boot(self) -> None:
        """Do nothing: it boots with its VM."""

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Refuse: there is no shell."""
        del wanted
        await streams.stderr.write(b"Talos has no shell: use talosctl\n")
        return 127

    async def read_file(self, path: str, limit: int) -> bytes:
        """Refuse: files are read through the Talos API."""
        del limit
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)

    async def write_file(self, path: str, content: bytes) -> None:
        """Refuse: nothing can be written."""
        del content
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    async def users(self) -> tuple[str, ...]:
        """Return nobody."""
        return ()

    async def authorized_keys(self, user: str) -> tuple[str, ...]:
        """Return none."""
        del user
        return ()

    async def accepts_password(self, user: str, password: str) -> bool:
        """Refuse."""
        del user, password
        return False

    async def host_keys(self) -> tuple[str, ...]:
        """Return none."""
        return ()

    async def endpoint(self, port: int) -> Any:
        """Return nothing."""
        del port
        return None

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Refuse: nothing else listens."""
        del port, source
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    async def stop(self) -> None:
        """Do nothing: the machine follows its VM."""

    async def kill(self) -> None:
        """Do nothing, as above."""
