"""Starting one program in the guest, as a user, on descriptors or on a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import termios
from typing import Any, NamedTuple, Optional

from . import accounts, identity

__all__ = ["PATH", "ProgramRequest", "exit_status", "spawn"]

SHIMS = "/run/lab/bin"
PATH = f"{SHIMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProgramRequest(NamedTuple):
    """A program to start."""

    argv: Optional[list[str]]
    line: Optional[str]
    user: str
    env: dict[str, str]
    cwd: Optional[str]
    terminal: Optional[dict[str, Any]]
    login: bool

    @classmethod
    def of(cls, message: dict[str, Any]) -> ProgramRequest:
        """Read a message."""
        argv = message.get("argv")
        return cls(
            argv=None if argv is None else [str(word) for word in argv],
            line=message.get("line"),
            user=str(message.get("user", "root")),
            env={str(key): str(value) for key, value in (message.get("env") or {}).items()},
            cwd=message.get("cwd"),
            terminal=message.get("terminal"),
            login=bool(message.get("login", True)),
        )


def spawn(wanted: ProgramRequest, descriptors: list[int], *, keep: set[int]) -> tuple[int, Optional[int]]:
    """Start it; return its number and, if it has a terminal, our end of that.

    Raises:
        LookupError: There is no such user.
        OSError: The system does not let us.
    """
    user = accounts.find_user(wanted.user)
    if user is None:
        raise LookupError(f"unknown user {wanted.user}")
    near = far = None
    if wanted.terminal is not None:
        near, far = os.openpty()
        size = (int(wanted.terminal.get("rows", 24)), int(wanted.terminal.get("columns", 80)), 0, 0)
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", *size))
        if user.uid and not identity.is_alone():
            os.fchown(far, user.uid, 5)
        own = [far, far, far]
    elif len(descriptors) == 3:
        own = list(descriptors)
    else:
        raise ValueError("three descriptors are needed")
    pid = os.fork()
    if pid:
        if far is not None:
            os.close(far)
        return pid, near
    _run(wanted, user, own, keep)
    os._exit(126)


def _run(wanted: ProgramRequest, user: accounts.User, own: list[int], keep: set[int]) -> None:
    """Become the program; whatever goes wrong is said on its standard error."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        safe = [os.dup(number) for number in own]
        for target, source in enumerate(safe):
            os.dup2(source, target)
        os.closerange(3, max([*keep, *safe, *own]) + 64)
        if wanted.terminal is not None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        groups = accounts.groups_of(user)
        identity.limit()
        identity.switch_user(user, groups)
        _enter(wanted, user)
        env = _environment(wanted, user)
        argv, program = _argv(wanted, user)
        _execute(program, argv, env)
    except BaseException as err:
        with contextlib.suppress(OSError):
            os.write(2, f"{err}\n".encode())
        os._exit(127 if isinstance(err, FileNotFoundError) else 126)


def _enter(wanted: ProgramRequest, user: accounts.User) -> None:
    if wanted.cwd is not None:
        with contextlib.suppress(OSError):
            os.chdir(wanted.cwd)
            return
    try:
        os.chdir(user.home)
    except OSError:
        os.chdir("/")


def _environment(wanted: ProgramRequest, user: accounts.User) -> dict[str, str]:
    own = {
        "PATH": PATH,
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "SHELL": user.shell or "/bin/sh",
        "LANG": "C.UTF-8",
        # What the machine has in place of them is not for this guest.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if wanted.login:
        own["MAIL"] = f"/var/mail/{user.name}"
    if wanted.terminal is not None:
        own["TERM"] = str(wanted.terminal.get("name") or "xterm")
    return {**own, **wanted.env}


def _argv(wanted: ProgramRequest, user: accounts.User) -> tuple[list[str], str]:
    shell = user.shell or "/bin/sh"
    if wanted.argv is not None:
        return wanted.argv, wanted.argv[0]
    if wanted.line is not None:
        return [shell.rpartition("/")[2], "-c", wanted.line], shell
    return [f"-{shell.rpartition('/')[2]}"], shell


def _execute(program: str, argv: list[str], env: dict[str, str]) -> None:
    try:
        os.execvpe(program, argv, env)  # noqa: S606 - that is what it is for
    except FileNotFoundError as err:
        raise FileNotFoundError(f"{program}: command not found") from err
    except OSError as err:
        raise OSError(f"{program}: {err.strerror}") from err


def exit_status(status: int) -> int:
    """Return what a shell would: the exit status, or 128 and the signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
