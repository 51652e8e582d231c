"""Messages between the lab, a guest's init and the programs in the guest: JSON, with descriptors beside it.

The sockets keep messages apart (SOCK_SEQPACKET), so one message is one call.
"""

from __future__ import annotations

import array
import json
import os
import socket
from typing import Any, Optional

__all__ = ["BROKER", "MOST_BYTES", "Message", "ask", "receive", "send"]

BROKER = "/run/lab/init.sock"
MOST_BYTES = 200_000
_MOST_DESCRIPTORS = 4

Message = dict[str, Any]


def send(sock: socket.socket, message: Message, descriptors: tuple[int, ...] = ()) -> None:
    """Send a message.

    Raises:
        OSError: It is too large, or no one is there.
    """
    beside = []
    if descriptors:
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())]
    sock.sendmsg([json.dumps(message).encode()], beside)


def receive(sock: socket.socket) -> tuple[Optional[Message], list[int]]:
    """Return a message and its descriptors; None at the end."""
    found: list[int] = []
    data, beside, _, _ = sock.recvmsg(
        MOST_BYTES, socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize), socket.MSG_CMSG_CLOEXEC
    )
    for level, kind, content in beside:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
            found += numbers
    if not data:
        for number in found:
            os.close(number)
        return None, []
    try:
        message = json.loads(data)
    except ValueError:
        message = {}
    return (message if isinstance(message, dict) else {}), found


def ask(message: Message, descriptors: tuple[int, ...] = ()) -> Message:
    """Ask the guest's init something and return the last message that it answers.

    Raises:
        OSError: It does not answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(BROKER)
        send(sock, message, descriptors)
        answer: Message = {}
        while True:
            try:
                found, _ = receive(sock)
            except InterruptedError:
                continue
            if found is None:
                return answer
            answer = found
            if not answer.get("started"):
                return answer
