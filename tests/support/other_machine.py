"""The program as it runs on another machine: with another host name, and a clock of its own.

The host name is that of the kernel, in a namespace of the process. So everything that tells machines apart
takes this for another one, also whether a process can be looked at. Only the clock is this module's own.
"""

from __future__ import annotations

import ctypes
import os
import socket
import time
from pathlib import Path

__all__ = ["AHEAD_VARIABLE", "ENTRY", "NAME_VARIABLE", "can_be_apart", "run"]

ENTRY = "tests.support.other_machine:run"
NAME_VARIABLE = "STACKYARD_TEST_MACHINE"
AHEAD_VARIABLE = "STACKYARD_TEST_CLOCK_AHEAD_S"
_NEW_UTS, _NEW_USER = 0x04000000, 0x10000000


def run() -> None:
    """Be the program on the machine that the environment names."""
    if name := os.environ.get(NAME_VARIABLE):
        _enter(name)
    if ahead := os.environ.get(AHEAD_VARIABLE):
        _shift_clock(float(ahead))
    from stackyard.__main__ import run as run_program

    run_program()


def can_be_apart() -> bool:
    """Tell whether this system lets a process have a host name of its own."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _enter("elsewhere")
            status = int(socket.gethostname() != "elsewhere")
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def _enter(name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_UTS) != 0:
        # An ordinary user may do this where he is the only one.
        uid, gid = os.getuid(), os.getgid()
        if libc.unshare(_NEW_USER | _NEW_UTS) != 0:
            raise OSError(ctypes.get_errno(), "The host name cannot be changed.")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    socket.sethostname(name)


def _shift_clock(ahead_s: float) -> None:
    real = time.time
    time.time = lambda: real() + ahead_s
