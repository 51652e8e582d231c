"""The only SSH client: run a command on another machine, put a file there.

    async with ssh.connect(ssh.Host(address="10.0.0.5", username="root", password=...)) as shell:
        said = await shell.run("hostname")

The caller gives keys and passwords. With `Host.openssh`, the user's own OpenSSH settings for the machine
apply. A host with pinned keys has to show one of them. Any other host key is stored at the first contact,
and the host is refused once its key has changed. `Host.via` goes through other machines, and `Jumps` shares
the connections to those. This package does not know what the machines are for.

The names below are imported when they are used: the library behind them takes half a second to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.clients.ssh.download import receive_file
    from stackyard.clients.ssh.failures import (
        HostKeyChangedError,
        LoginRefusedError,
        RemoteCommandError,
        SshConfigError,
        SshError,
        SshUnreachableError,
    )
    from stackyard.clients.ssh.host import Host, OpenSsh
    from stackyard.clients.ssh.known_hosts import forget_hosts
    from stackyard.clients.ssh.lifeline import Script, ScriptResult, attend
    from stackyard.clients.ssh.openssh import resolve_login
    from stackyard.clients.ssh.shell import Jumps, Shell, connect

__all__ = [
    "Host",
    "HostKeyChangedError",
    "Jumps",
    "LoginRefusedError",
    "OpenSsh",
    "RemoteCommandError",
    "Script",
    "ScriptResult",
    "Shell",
    "SshConfigError",
    "SshError",
    "SshUnreachableError",
    "attend",
    "connect",
    "forget_hosts",
    "receive_file",
    "resolve_login",
]

_PLACES = {
    "lifeline": ("Attended", "Script", "attend"),
    "failures": (
        "HostKeyChangedError",
        "LoginRefusedError",
        "RemoteCommandError",
        "SshConfigError",
        "SshError",
        "SshUnreachableError",
    ),
    "host": ("Host", "OpenSsh"),
    "known_hosts": ("forget_hosts",),
    "openssh": ("resolve_login",),
    "download": ("receive_file",),
    "shell": ("Jumps", "Shell", "connect"),
}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: for the names below alone

    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"stackyard.clients.ssh.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
