"""The first line that a port says, from a machine that may say anything, and without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["read_greeting"]

# What an SSH server may write before its line feed.
_LONGEST = 255


async def read_greeting(read: Callable[[int], Awaitable[bytes]]) -> bytes:
    """Return a line, or the beginning of one that is longer than any greeting; nothing at the end.

    Args:
        read: Returns at most so many bytes, and none at the end.
    """
    line = b""
    while len(line) < _LONGEST and b"\n" not in line:
        more = await read(_LONGEST - len(line))
        if not more:
            break
        line += more
    return line.partition(b"\n")[0]
