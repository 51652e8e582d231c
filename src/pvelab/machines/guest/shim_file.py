"""`lab-file`: reads and writes whole files for the lab, and says the number of an error."""

from __future__ import annotations

import errno
import os
import stat
import sys

__all__ = ["run"]


def run(_name: str, words: list[str]) -> int:
    """Do it."""
    try:
        if words[0] == "read":
            with open(_open(words[1], os.O_RDONLY), "rb") as stream:
                sys.stdout.buffer.write(stream.read(int(words[2])))
        else:
            with open(_open(words[1], os.O_WRONLY | os.O_CREAT), "wb") as stream:
                stream.truncate()
                stream.write(sys.stdin.buffer.read())
    except OSError as err:
        sys.stderr.write(str(err.errno or 5))
        return 1
    return 0


def _open(path: str, flags: int) -> int:
    """Open a file, but nothing that waits for someone else or never ends: a FIFO, a device, a terminal."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, path)
