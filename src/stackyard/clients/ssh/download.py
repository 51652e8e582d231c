"""Files from another machine."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, BinaryIO, cast

import asyncssh

from stackyard.clients.ssh.failures import SshError

if TYPE_CHECKING:
    from stackyard.clients.ssh.shell import Shell

__all__ = ["receive_file"]

_CHUNK_BYTES = 64 * 1024


async def receive_file(shell: Shell, path: str, target: BinaryIO, *, offset: int = 0) -> int:
    """Copy a file from a machine over SFTP, from an offset on, and return how many bytes came.

    It is a file of a size that the machine says at the beginning, and no more than that is taken: a device
    or a file that grows while it is read would have no end.

    Raises:
        SshError: It cannot be read, or is no file.
    """
    came = 0
    try:
        async with shell._connection.start_sftp_client() as sftp:
            size = _size_of(await sftp.stat(path), path, shell)
            async with sftp.open(path, "rb") as remote:
                while chunk := await remote.read(
                    max(0, min(_CHUNK_BYTES, size - offset - came)), offset + came
                ):
                    # The library says text; of a file that is opened so it is bytes.
                    came += target.write(cast("bytes", chunk)[: size - offset - came])
                    if offset + came >= size:
                        break
    except (asyncssh.Error, OSError) as err:
        reason = getattr(err, "reason", "") or str(err) or type(err).__name__
        raise SshError(f"Cannot read {path} on {shell.host}: {reason.rstrip('.')}.") from err
    return came


def _size_of(found: asyncssh.SFTPAttrs, path: str, shell: Shell) -> int:
    is_file = found.type == asyncssh.FILEXFER_TYPE_REGULAR or (
        found.type == asyncssh.FILEXFER_TYPE_UNKNOWN and stat.S_ISREG(found.permissions or 0)
    )
    if not is_file or found.size is None:
        raise SshError(f"Cannot read {path} on {shell.host}: it is not a regular file.")
    return found.size
