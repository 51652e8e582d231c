"""Ask programs to stop when the process that started them ends; one process does it for all of them.

It gets a descriptor of each program over a socket (SCM_RIGHTS) that only the other process holds open: when
that ends, however it does, the socket closes. It imports nothing of ours.

python -I -S watcher.py SOCKET
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys


def main(descriptor: str) -> None:
    """Hold a descriptor of each program that runs, until the socket closes; then ask those to stop."""
    link = socket.socket(fileno=int(descriptor))
    poll = select.poll()
    poll.register(link, select.POLLIN)
    running: set[int] = set()
    while True:
        for number, _ in poll.poll():
            if number != link.fileno():
                # It has ended.
                poll.unregister(number)
                running.discard(number)
                os.close(number)
                continue
            _, received, _, _ = socket.recv_fds(link, 1, 1)
            if not received:
                stop(running)
                return
            running.add(received[0])
            poll.register(received[0], select.POLLIN)


def stop(running: set[int]) -> None:
    """Ask programs to stop; a descriptor never means another process than the one it was opened for."""
    for number in running:
        try:
            signal.pidfd_send_signal(number, signal.SIGTERM)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            # It has ended, or runs as another user.
            continue


if __name__ == "__main__":
    main(sys.argv[1])
