"""Where to connect to, and as whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine and how to log in.

    Attributes:
        address: Its name or address.
        port: The port of its SSH server.
        username: Who we are there.
        password: The password, where one is used.
        private_key: A private key in OpenSSH or PEM form, where one is used.
        agent_socket: The socket of an SSH agent that holds keys, where one is used.
        known_hosts: The file that remembers host keys; one of stackyard's own when absent.
        connect_s: How long connecting and logging in may take.
    """

    address: str
    port: int = 22
    username: str = "root"
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    agent_socket: str | None = None
    known_hosts: Path | None = None
    connect_s: float = 30.0

    def __str__(self) -> str:
        return f"{self.username}@{self.address}:{self.port}"
