"""What can go wrong over SSH."""

from __future__ import annotations

from stackyard.base.errors import InvalidInputError, StackyardError, UnreachableError

__all__ = [
    "HostKeyChangedError",
    "LoginRefusedError",
    "RemoteCommandError",
    "SshConfigError",
    "SshError",
    "SshUnreachableError",
]


class SshError(StackyardError):
    """A file could not be written on another machine, or the connection broke while we worked there."""

    code = "E-SSH"
    summary = "Work on another machine over SSH failed"
    default_remedy = "Correct what the machine names and run the command again."


class RemoteCommandError(SshError):
    """A command that was run on another machine ended with an error.

    Args:
        detail: Which command, and what it said.
        status: Its exit status; None when a signal ended it.
    """

    code = "E-SSH-COMMAND"
    summary = "A command on another machine failed"

    def __init__(self, detail: str, *, status: int | None) -> None:
        super().__init__(detail)
        self.status = status


class SshUnreachableError(UnreachableError):
    """A machine cannot be reached over SSH, or does not accept the login."""

    code = "E-SSH-UNREACHABLE"
    summary = "A machine cannot be reached over SSH"
    default_remedy = (
        "Check the address, the port, the user and the key or password, then run the command again."
    )


class LoginRefusedError(SshUnreachableError):
    """A machine answers over SSH and does not let us in with the keys or the password that we have."""

    code = "E-SSH-REFUSED"
    summary = "A machine refuses the login over SSH"
    default_remedy = "Check the user, and that the machine knows one of the keys that are offered."


class HostKeyChangedError(SshUnreachableError):
    """The host key of a machine is not the one that was seen before."""

    code = "E-SSH-HOST-KEY"
    summary = "The host key of a machine has changed"
    default_remedy = "If the machine was reinstalled, remove its line from the file of known hosts."


class SshConfigError(InvalidInputError):
    """OpenSSH's own settings cannot be read, or others could have changed them."""

    code = "E-SSH-CONFIG"
    summary = "The settings of OpenSSH cannot be used"
    default_remedy = "Correct the file that is named, then run the command again."
