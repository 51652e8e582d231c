"""`lab-file`: reads and writes whole files for the lab, and says the number of an error."""

from __future__ import annotations

import os
import sys

__all__ = ["run"]


def run(_name: str, words: list[str]) -> int:
    """Do it."""
    try:
        if words[0] == "read":
            descriptor = os.open(words[1], os.O_RDONLY | os.O_NONBLOCK)
            with open(descriptor, "rb") as stream:
                sys.stdout.buffer.write(stream.read(int(words[2])))
        else:
            with open(words[1], "wb") as stream:
                stream.write(sys.stdin.buffer.read())
    except OSError as err:
        sys.stderr.write(str(err.errno or 5))
        return 1
    return 0
