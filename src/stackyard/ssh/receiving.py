"""Files from another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, cast

import asyncssh

from stackyard.ssh.failures import SshError

if TYPE_CHECKING:
    from stackyard.ssh.shell import Shell

__all__ = ["receive_file"]

_CHUNK_BYTES = 64 * 1024


async def receive_file(shell: Shell, path: str, target: BinaryIO, *, offset: int = 0) -> int:
    """Copy a file from a machine over SFTP, from an offset on, and return how many bytes came.

    Raises:
        SshError: It cannot be read.
    """
    came = 0
    try:
        async with shell._connection.start_sftp_client() as sftp, sftp.open(path, "rb") as remote:
            while chunk := await remote.read(_CHUNK_BYTES, offset + came):
                # The library says text; of a file that is opened so it is bytes.
                came += target.write(cast("bytes", chunk))
    except (asyncssh.Error, OSError) as err:
        reason = getattr(err, "reason", "") or str(err) or type(err).__name__
        raise SshError(f"Cannot read {path} on {shell.host}: {reason.rstrip('.')}.") from err
    return came
