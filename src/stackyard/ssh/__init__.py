"""The one door to other machines over SSH: run a command there, put a file there.

    async with ssh.connect(ssh.Host(address="10.0.0.5", username="root", password=...)) as shell:
        said = await shell.run("hostname")

Nothing of the user's own SSH settings is read; keys and passwords are given. A host that is new is accepted
and remembered, one whose key has changed is refused. It knows nothing of what the machines are for.
"""

from __future__ import annotations

from stackyard.ssh.failures import HostKeyChangedError, RemoteCommandError, SshError, SshUnreachableError
from stackyard.ssh.host import Host
from stackyard.ssh.shell import Shell, connect

__all__ = [
    "Host",
    "HostKeyChangedError",
    "RemoteCommandError",
    "Shell",
    "SshError",
    "SshUnreachableError",
    "connect",
]
