"""Ports for programs that must be told theirs: nobody else is given them between the choice and the use.

What the system hands out by itself, to whoever listens on port 0 and to every outgoing connection, may be
taken again the moment it is let go of. These come from outside that range, and a test process owns its own.
"""

from __future__ import annotations

import functools
import os
import random
import socket
from pathlib import Path

__all__ = ["free_port", "free_ports"]

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_RANGE = "32768 60999"
LOWEST, HIGHEST = 10_000, 65_535
# How many a test process takes at a time; the first of them is what it owns the others by.
BLOCK = 16


def free_port() -> int:
    """Return a port that nobody listens on, and that nobody else is given."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return several."""
    ours = _ours(os.getpid())
    while len(ours) < count:
        ours += _next_block()
    taken, ours[:] = ours[:count], ours[count:]
    return taken


@functools.cache
def _ours(pid: int) -> list[int]:
    """Return what a process has left; one that was forked begins again."""
    del pid
    return []


def _next_block() -> list[int]:
    for beginning in _beginnings():
        try:
            # Open until this process ends, which keeps the others from the block.
            socket.create_server(("127.0.0.1", beginning)).detach()
        except OSError:
            continue
        return [port for port in range(beginning + 1, beginning + BLOCK) if _is_free(port)]
    raise AssertionError("every port is taken")


def _beginnings() -> list[int]:
    """Return where blocks may begin, in an order of our own."""
    text = RANGE.read_text() if RANGE.exists() else USUAL_RANGE
    first, last = map(int, text.split())
    blocks = range(LOWEST, HIGHEST - BLOCK, BLOCK)
    # Where the system may hand out all of them, nothing is better than any.
    found = [port for port in blocks if port + BLOCK <= first or port > last] or list(blocks)
    # Not the order of the tests, which every process of a run shares.
    random.SystemRandom().shuffle(found)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0 and _can_bind(port)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
