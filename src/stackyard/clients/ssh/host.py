"""Where to connect to, and as whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.ssh.socks5 import Socks5

__all__ = ["Host", "OpenSsh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSsh:
    """What counts for a machine of OpenSSH's own settings (`~/.ssh/config`, then `/etc/ssh/ssh_config`).

    Attributes:
        name: Another name that the settings may have for it, with its address as `HostName`.
        has_user: Whether someone chose the user, so that `User` does not count.
        has_port: Whether someone chose the port, so that `Port` does not count.
        keys_only: Whether only `IdentityFile`, `IdentityAgent` and `IdentitiesOnly` count.
    """

    name: str | None = None
    has_user: bool = False
    has_port: bool = False
    keys_only: bool = False


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
        socks5: A SOCKS5 proxy through which it is reached, where one is used.
        proxy_command: A command whose input and output lead to it, where one is used.
        agent_identities: The public keys that the agent may be asked for; all that it has when absent.
        forwarded_agent: The socket of an SSH agent that commands there may use, where one is forwarded.
        openssh: What of OpenSSH's own settings counts when we log in; nothing when absent.
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
    socks5: Socks5 | None = None
    proxy_command: str | None = None
    agent_identities: tuple[Path, ...] | None = None
    forwarded_agent: str | None = None
    openssh: OpenSsh | None = None
    connect_s: float = 30.0

    def __str__(self) -> str:
        return f"{self.username}@{self.address}:{self.port}" + (f" through {self.via}" if self.via else "")
