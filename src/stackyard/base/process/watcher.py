"""Ask programs to stop when the process that started them ends; one process does it for all of them.

It gets a descriptor of each program, and one for each pipe that the program writes to, over a socket
(SCM_RIGHTS) that only the other process holds open: when that ends, however it does, the socket closes. From
then on it reads the pipes, because a program that writes to a pipe without a reader is killed, before it has
saved its work. It imports nothing of ours.

python -I -S watcher.py SOCKET
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

# A descriptor of the program, and those of its standard output and error.
MOST_DESCRIPTORS = 3
_CHUNK_BYTES = 256 * 1024


def main(descriptor: str) -> None:
    """Hold the descriptors of each program that runs, until the socket closes; then ask those to stop."""
    link = socket.socket(fileno=int(descriptor))
    poll = select.poll()
    poll.register(link, select.POLLIN)
    running: dict[int, list[int]] = {}
    while True:
        for number, _ in poll.poll():
            if number != link.fileno():
                # It has ended.
                poll.unregister(number)
                for one in (number, *running.pop(number)):
                    os.close(one)
                continue
            _, received, _, _ = socket.recv_fds(link, 1, MOST_DESCRIPTORS)
            if not received:
                stop(list(running))
                drain([pipe for pipes in running.values() for pipe in pipes])
                return
            running[received[0]] = received[1:]
            poll.register(received[0], select.POLLIN)


def stop(running: list[int]) -> None:
    """Ask programs to stop; a descriptor never means another process than the one it was opened for."""
    for number in running:
        try:
            signal.pidfd_send_signal(number, signal.SIGTERM)
        except OSError:
            # It has ended, or runs as another user.
            continue


def drain(pipes: list[int]) -> None:
    """Read pipes until nobody writes to them any more."""
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    left = set(pipes)
    while left:
        for number, _ in poll.poll():
            try:
                data = os.read(number, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            if not data:
                poll.unregister(number)
                left.discard(number)


if __name__ == "__main__":
    main(sys.argv[1])
