"""What OpenSSH's own settings say of a machine: the keys, the agent, the user, the port, and the way there.

They are read when we log in, from `~/.ssh/config` and `/etc/ssh/ssh_config`. The first value counts, and what
the caller chose counts before them: as with `ssh -l USER -p PORT ADDRESS`.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncssh.config import ConfigParseError, SSHClientConfig

from stackyard.clients.ssh.failures import SshConfigError
from stackyard.clients.ssh.host import Host, OpenSsh
from stackyard.clients.ssh.user_keys import user_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["resolve_login"]

_SYSTEM_SETTINGS = Path("/etc/ssh/ssh_config")
_AGENT_VARIABLE = "SSH_AUTH_SOCK"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# As many machines in a row as OpenSSH goes through; more are two that name each other.
_MOST_JUMPS = 16
_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<address>\[[^\]]+\]|[^:]+)(?::(?P<port>\d{1,5}))?")


def resolve_login(host: Host) -> Host:
    """Return a machine with what OpenSSH's settings say of it; as it is where they do not count.

    Raises:
        SshConfigError: They cannot be read.
    """
    return _resolve_host(host, _MOST_JUMPS)


def _resolve_host(host: Host, jumps: int) -> Host:
    if host.openssh is None:
        return host
    found = _HostSettings.of(host, host.openssh)
    changes = _keys(host, found)
    if not host.openssh.keys_only:
        changes |= {
            "address": found.text("Hostname") or host.address,
            "alias": host.alias or found.text("HostKeyAlias"),
        }
        if not host.openssh.has_user:
            changes["username"] = found.text("User") or host.username
        if not host.openssh.has_port:
            changes["port"] = found.get("Port") or host.port
        if host.via is None:
            changes |= _way(host, found, jumps)
    return dataclasses.replace(host, openssh=None, **changes)


def _keys(host: Host, found: _HostSettings) -> dict[str, Any]:
    named = tuple(Path(path).expanduser() for path in found.get("IdentityFile") or ())
    own = user_keys()
    kept = tuple(path for path in host.key_files if not named or path not in own)
    files = tuple(dict.fromkeys((*kept, *named)))
    changes: dict[str, Any] = {"key_files": files, "agent_socket": _agent(host, found)}
    if found.get("IdentitiesOnly"):
        halves = (path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub") for path in files)
        changes["agent_identities"] = tuple(path for path in halves if path.is_file())
    return changes


def _agent(host: Host, found: _HostSettings) -> str | None:
    if not found.has("IdentityAgent"):
        return host.agent_socket
    said = found.text("IdentityAgent")
    if said is None:
        return None
    if said == _AGENT_VARIABLE:
        return os.environ.get(_AGENT_VARIABLE)
    return os.environ.get(said[1:]) if said.startswith("$") else str(Path(said).expanduser())


def _way(host: Host, found: _HostSettings, jumps: int) -> dict[str, Any]:
    """Return through what a machine is reached: others, the last one first, or a command."""
    said = found.text("ProxyJump")
    if said is None:
        return {"proxy_command": found.text("ProxyCommand")}
    if jumps == 0:
        raise SshConfigError(
            f"`ProxyJump` for {host.address} leads through more than {_MOST_JUMPS} machines."
        )
    via: Host | None = None
    for part in said.split(","):
        match = _JUMP.fullmatch(part.strip())
        if match is None:
            raise SshConfigError(f"`ProxyJump {said}` for {host.address} is not [USER@]HOST[:PORT],...")
        jump = Host(
            address=match["address"].strip("[]"),
            port=int(match["port"] or 22),
            username=match["user"] or getpass.getuser(),
            key_files=host.key_files,
            agent_socket=host.agent_socket,
            known_hosts=host.known_hosts,
            via=via,
            connect_s=host.connect_s,
            openssh=OpenSsh(has_user=match["user"] is not None, has_port=match["port"] is not None),
        )
        via = _resolve_host(jump, jumps - 1)
    return {"via": via}


@dataclass(frozen=True, slots=True)
class _HostSettings:
    """What the settings say, by each name that they have for a machine; the first that says it counts."""

    settings: tuple[SSHClientConfig, ...]

    @classmethod
    def of(cls, host: Host, wanted: OpenSsh) -> _HostSettings:
        files = _files()
        by_address = _read(host.address, host, wanted, files)
        if wanted.name is None or wanted.name == host.address:
            return cls((by_address,))
        by_name = _read(wanted.name, host, wanted, files)
        is_same = by_name.get("Hostname") in (host.address, by_address.get("Hostname", host.address))
        return cls((by_name, by_address) if is_same else (by_address,))

    def has(self, option: str) -> bool:
        absent = object()
        return any(one.get(option, absent) is not absent for one in self.settings)

    def get(self, option: str) -> Any:
        return next((value for one in self.settings if (value := one.get(option)) is not None), None)

    def text(self, option: str) -> str | None:
        value = self.get(option)
        return None if value is None else str(value)


def _files() -> tuple[Path, ...]:
    """Return the files of settings that there are.

    Raises:
        SshConfigError: The user's own belongs to others, or others may write it; OpenSSH refuses that too.
    """
    own = Path("~").expanduser() / ".ssh" / "config"
    if own.is_file():
        about = own.stat()
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & _OTHERS_WRITE:
            raise SshConfigError(
                f"{own} belongs to another user or is writable by others, and it names commands to run.",
                remedy=f"chmod 600 {own}",
            )
    return tuple(path for path in (own, _SYSTEM_SETTINGS) if path.is_file())


def _read(name: str, host: Host, wanted: OpenSsh, paths: Sequence[Path]) -> SSHClientConfig:
    """Read the settings for a name, and once more where they have a block `Match final`."""
    given = (
        getpass.getuser(),
        host.username if wanted.has_user else (),
        name,
        host.port if wanted.has_port else (),
    )
    try:
        found = SSHClientConfig.load(None, paths, False, False, False, *given)
        if found.has_match_final():
            found = SSHClientConfig.load(None, paths, False, False, True, *given)
    except (ConfigParseError, OSError, UnicodeDecodeError) as err:
        raise SshConfigError(f"The settings for {name} cannot be read: {err}.") from err
    return found  # type: ignore[return-value]
