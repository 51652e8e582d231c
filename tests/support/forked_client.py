"""Ask the process of `tests.support.forking` for a run of the program, with nothing that takes long to load.

As a script it is the program `stackyard` for shells: it hands on its streams, its environment, its folder and
the signals that it gets, and ends as the run does.

python forked_client.py ADDRESS [ARGUMENT ...]
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import sys

__all__ = ["ask", "read_exactly", "read_number"]

PROGRAM = "stackyard.__main__:run"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
NUMBER = struct.Struct("!i")


def ask(address: str, streams: tuple[int, int, int], request: dict[str, object]) -> tuple[int, socket.socket]:
    """Have a run begin on these descriptors; return its process, and where its end will be told."""
    told = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        told.connect(address)
        told.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))])
        # What cannot be decoded is kept in code points that JSON writes as escapes.
        body = json.dumps(request).encode()
        told.sendall(NUMBER.pack(len(body)) + body)
        return read_number(told), told
    except BaseException:
        told.close()
        raise


def read_number(sock: socket.socket) -> int:
    return int(NUMBER.unpack(read_exactly(sock, NUMBER.size))[0])


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("The process that is forked for each run is gone.")
        data += more
    return data


def main(address: str, arguments: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    request: dict[str, object] = {
        "entry": PROGRAM,
        "arguments": arguments,
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
    }
    pid, told = ask(address, (0, 1, 2), request)
    for number in FORWARDED:
        signal.signal(number, lambda number, _: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    with told:
        status = read_number(told)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
