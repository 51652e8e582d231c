"""The one door to other machines over SSH: run a command there, put a file there.

    async with ssh.connect(ssh.Host(address="10.0.0.5", username="root", password=...)) as shell:
        said = await shell.run("hostname")

Keys and passwords are given. What the user's own OpenSSH settings say of a machine counts where
`Host.openssh` says so. A host whose keys are pinned has to show one of them; another one that is new is
accepted and remembered, and refused once its key has changed.
`Host.via` leads through other machines, and `Jumps` shares the connections to those. It knows nothing of what
the machines are for.

The names below are imported when they are used: the library behind them costs half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.ssh.attending import Attended, Script, attend
    from stackyard.ssh.failures import (
        HostKeyChangedError,
        LoginRefusedError,
        RemoteCommandError,
        SshConfigError,
        SshError,
        SshUnreachableError,
    )
    from stackyard.ssh.host import Host, OpenSsh
    from stackyard.ssh.known_hosts import forget_hosts
    from stackyard.ssh.openssh import resolve_login
    from stackyard.ssh.receiving import receive_file
    from stackyard.ssh.shell import Jumps, Shell, connect

__all__ = [
    "Attended",
    "Host",
    "HostKeyChangedError",
    "Jumps",
    "LoginRefusedError",
    "OpenSsh",
    "RemoteCommandError",
    "Script",
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
    "attending": ("Attended", "Script", "attend"),
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
    "receiving": ("receive_file",),
    "shell": ("Jumps", "Shell", "connect"),
}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: for the names below alone

    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"stackyard.ssh.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
