"""Host keys: pinned ones count alone; else a new host is remembered, and a changed key is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh

from stackyard.base import directories, files, locks

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from stackyard.clients.ssh.host import Host

__all__ = ["HostKeyPolicy", "KnownHosts", "forget_hosts", "list_pinned_algorithms"]

# By which signatures a key of a type is shown, where that is not its own name.
_SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")}


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
        # Several connections to the same new host may end here at once. The file is replaced whole: one that
        # was cut off would have forgotten hosts, and their next key would be believed.
        with locks.hold_folder(self.path.parent):
            if key not in self.keys(host):
                known = self.path.read_text() if self.path.exists() else ""
                ended = known if known.endswith("\n") or not known else f"{known}\n"
                files.replace_file(self.path, f"{ended}{_name(host)} {key}\n".encode())


def forget_hosts(path: Path, aliases: Collection[str]) -> None:
    """Forget the keys of hosts that were remembered by an alias, because they are no more."""
    gone = set(aliases)
    if not path.exists():
        return
    with locks.hold_folder(path.parent):
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if line.split(" ", 1)[0] not in gone]
        if kept != lines:
            files.replace_file(path, "".join(kept).encode())


def _name(host: Host) -> str:
    return host.alias or f"[{host.address}]:{host.port}"


def _plain(line: str) -> str:
    """Return a public key without its comment."""
    return " ".join(line.split()[:2])


def list_pinned_algorithms(host: Host) -> tuple[str, ...]:
    """Return the signatures to ask a host for whose keys are pinned: it may have others besides."""
    types = dict.fromkeys(line.split()[0] for line in host.host_keys)
    return tuple(name for type_ in types for name in _SIGNATURES.get(type_, (type_,)))


class HostKeyPolicy(asyncssh.SSHClient):
    """Decides on the key that a host shows.

    Attributes:
        changed: Whether it was refused because another one is known.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known = KnownHosts.of(host)
        self.changed = False

    @property
    def place(self) -> str:
        """Where it says which key is the right one."""
        return "among those that are pinned" if self._host.host_keys else f"the one in {self._known.path}"

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Accept a key that is pinned or known, and the first one of a new host of which none is pinned."""
        shown = _plain(key.export_public_key().decode())
        pinned = {_plain(line) for line in self._host.host_keys}
        known = pinned or self._known.keys(self._host)
        if not known:
            self._known.remember(self._host, shown)
        self.changed = bool(known) and shown not in known
        return not self.changed
