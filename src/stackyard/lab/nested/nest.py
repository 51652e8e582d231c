"""What a lab knows of the labs inside it, and of the ports that it answers on itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["AnswerGuest", "Nest"]

# Serves port 22 of a guest on one end of a socket pair, until the connection ends.
AnswerGuest = Callable[["Document", "socket.socket"], Awaitable[None]]


@dataclass(slots=True)
class Nest:
    """The labs inside a lab, and its own doors.

    Attributes:
        worlds: The labs that run inside guests, by the number of the guest.
        api_port: Where the API of this lab listens; None until it does.
        ssh_ports: Where the SSH server of each node listens.
        answer_guest: Answers port 22 of guests without an SSH server of their own; None without an SSH side.
        exposed: Ports of this machine that guests reach at the address of their gateway.
    """

    worlds: dict[int, World] = field(default_factory=dict)
    api_port: int | None = None
    ssh_ports: dict[str, int] = field(default_factory=dict)
    answer_guest: AnswerGuest | None = None
    exposed: frozenset[int] = frozenset()
