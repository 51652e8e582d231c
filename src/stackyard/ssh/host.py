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
        key_files: Files of private keys to try. One that is not there or has a passphrase is passed over: an
            agent is for those.
        agent_socket: The socket of an SSH agent that holds keys, where one is used.
        known_hosts: The file that remembers host keys; one of stackyard's own when absent.
        alias: The name by which its key is remembered; its address and port when absent.
        host_keys: The public keys of which it has to show one. With none, the first one that it ever showed
            counts.
        via: The machine through which it is reached; directly when absent.
        connect_s: How long connecting and logging in may take.
    """

    address: str
    port: int = 22
    username: str = "root"
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    key_files: tuple[Path, ...] = ()
    agent_socket: str | None = None
    known_hosts: Path | None = None
    alias: str | None = None
    host_keys: tuple[str, ...] = ()
    via: Host | None = None
    connect_s: float = 30.0

    def __str__(self) -> str:
        return f"{self.username}@{self.address}:{self.port}" + (f" through {self.via}" if self.via else "")
