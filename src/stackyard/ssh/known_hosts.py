"""Host keys that were seen before: a new host is remembered, a changed key is refused."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh

from stackyard import directories

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.ssh.host import Host

__all__ = ["KnownHosts", "Trusting"]


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """A file in OpenSSH's own form."""

    path: Path

    @classmethod
    def of(cls, host: Host) -> KnownHosts:
        """Return the file for a host."""
        return cls(host.known_hosts or directories.state_folder() / "known_hosts")

    def keys(self, host: Host) -> set[str]:
        """Return the keys by which a host is known."""
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return set()
        found = (line.split(" ", 1) for line in lines if " " in line)
        return {key.strip() for name, key in found if name == _name(host)}

    def remember(self, host: Host, key: str) -> None:
        """Add a key."""
        directories.ensure_private(self.path.parent)
        with open(self.path, "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            # Several connections to the same new host may end here at once.
            fcntl.flock(stream, fcntl.LOCK_EX)
            if key not in self.keys(host):
                stream.write(f"{_name(host)} {key}\n")


def _name(host: Host) -> str:
    return f"[{host.address}]:{host.port}"


class Trusting(asyncssh.SSHClient):
    """Decides on the key that a host shows.

    Attributes:
        changed: Whether it was refused because another one is known.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known = KnownHosts.of(host)
        self.changed = False

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Accept a key that is known, and the first one of a new host."""
        shown = " ".join(key.export_public_key().decode().split()[:2])
        known = self._known.keys(self._host)
        if not known:
            self._known.remember(self._host, shown)
        self.changed = bool(known) and shown not in known
        return not self.changed
