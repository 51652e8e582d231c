"""What a lab knows of the labs inside it, and of the ports that it answers on itself."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.nested.directory import Directory

if TYPE_CHECKING:
    import socket

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["AnswerGuest", "NestedLabs", "RunCommand"]

# Serves port 22 of a guest on one end of a socket pair, until the connection ends.
AnswerGuest = Callable[["Document", "socket.socket"], Coroutine[Any, Any, None]]


# Runs a program of the node's shell; returns its exit status and what it wrote on each output.
RunCommand = Callable[[str, list[str]], Coroutine[Any, Any, tuple[int, bytes, bytes]]]


_GUEST_NETWORK = ipaddress.IPv4Network("10.31.0.0/16")


@dataclass(slots=True)
class NestedLabs:
    """The labs inside a lab, and its own doors.

    Attributes:
        worlds: The labs that run inside guests, by the number of the guest.
        api_port: Where the API of this lab listens; None until it does.
        ssh_ports: Where the SSH server of each node listens.
        host_key: The public host key of those servers; None without an SSH side.
        answer_guest: Answers port 22 of guests without an SSH server of their own; None without an SSH side.
        run_command: Runs a command as a user on the first node; None without an SSH side.
        take_in: Takes files over that programs of a nested node made; None for a lab that is in no guest.
        exposed: Ports of this machine that guests reach at the address of their gateway.
        guest_network: The network of vmbr0.
        directory: The addresses that answer, here and in all labs inside and around.
    """

    worlds: dict[int, World] = field(default_factory=dict, repr=False)
    api_port: int | None = None
    ssh_ports: dict[str, int] = field(default_factory=dict)
    host_key: str | None = None
    answer_guest: AnswerGuest | None = None
    run_command: RunCommand | None = None
    take_in: Callable[[], Coroutine[Any, Any, None]] | None = None
    exposed: frozenset[int] = frozenset()
    guest_network: ipaddress.IPv4Network = _GUEST_NETWORK
    directory: Directory = field(default_factory=Directory, repr=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, repr=False)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else, until `close` at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End what was begun."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
