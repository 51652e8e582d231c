"""Become a program that is asked to stop when the process that started it ends.

Only a process itself can ask the kernel for that. Doing it between fork and exec would run Python in a copy
of a process without its other threads, whose locks no one gives back. So this small script is started in
place of the program, prepares its own process, and becomes the program. It imports nothing of ours.

python -I -S launcher.py PARENT REPORT LIMIT PROGRAM ARGUMENT ...

PARENT is the process that started it, REPORT a descriptor for the number of the error if the program cannot
be started, LIMIT the soft and the hard limit of open files (`1024:4096`; empty: as they are), and the
arguments begin with the name of the program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Interrupts are ignored in background jobs of a shell, and Python itself ignores the other two.
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def main(parent: str, report: str, limit: str, program: str, *argv: str) -> None:
    """Prepare this process and become the program."""
    os.set_inheritable(int(report), False)
    for number in _HEARD:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGTERM)
    try:
        if limit:
            soft, _, hard = limit.partition(":")
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
        os.execve(program, argv, _environment())  # noqa: S606 - no shell is wanted
    except OSError as err:
        os.write(int(report), str(err.errno).encode())
        raise SystemExit(127) from err


def _environment() -> dict[bytes, bytes]:
    """Return the environment that we were given: Python adds a locale to its own where there is none."""
    with open("/proc/self/environ", "rb") as given:
        rows = (row.partition(b"=") for row in given.read().split(b"\0") if row)
        return {name: value for name, _, value in rows}


if __name__ == "__main__":
    main(*sys.argv[1:])
