"""Becoming a user of the guest, within limits: the last steps of a child before its program."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from typing import TYPE_CHECKING

from . import seccomp

if TYPE_CHECKING:
    from .accounts import User

__all__ = ["LIMITS", "become_root", "call_itself", "is_alone", "limit", "peer_uid", "switch_user"]

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWUTS = 0x04000000
_PR_CAPBSET_DROP = 24
_PR_SET_NAME = 15
# What root of a guest may do beyond others: owners and modes of files, users, signals, low ports.
_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 10))
_CAPABILITIES = 41

_LIBC = ctypes.CDLL(None, use_errno=True)

# What a single program of a guest may use of the machine.
LIMITS = {
    resource.RLIMIT_NPROC: 400,
    resource.RLIMIT_AS: 8 * 2**30,
    resource.RLIMIT_FSIZE: 2 * 2**30,
    resource.RLIMIT_CPU: 3600,
    resource.RLIMIT_NOFILE: 1024,
    resource.RLIMIT_CORE: 0,
}


def is_alone() -> bool:
    """Return whether the sandbox has one user number only, because an ordinary user started it."""
    with open("/proc/self/uid_map", encoding="ascii") as stream:
        return int(stream.readline().split()[2]) == 1


def call_itself(name: str) -> None:
    """Let the process list show a name."""
    _LIBC.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def become_root() -> None:
    """Become root of the guest, in a user namespace without the number that the sandbox was set up with.

    That number is root of the machine; from here on no one in the guest can have it.

    Raises:
        OSError: The system refuses it.
    """
    if is_alone():
        return
    with open("/proc/self/uid_map", encoding="ascii") as stream:
        count = int(stream.readline().split()[2])
    for path in ("/run", "/run/lab", "/run/lab/bin", "/run/lab/lib", "/dev", "/dev/shm", "/dev/pts"):
        # What was made for the guest belongs to its root.
        with contextlib.suppress(OSError):
            os.chown(path, 0, 0)
    own = os.getpid()
    begun, begin = os.pipe()
    helper = os.fork()
    if not helper:
        # Only someone outside of the new namespace may give it more than one number.
        os.close(begin)
        os.read(begun, 1)
        try:
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{own}/{name}", "w", encoding="ascii") as stream:
                    stream.write(f"0 0 {count}\n")
        except OSError:
            os._exit(1)
        os._exit(0)
    _unshare(_CLONE_NEWUSER | _CLONE_NEWUTS)
    os.close(begin)
    os.close(begun)
    if os.waitpid(helper, 0)[1]:
        raise OSError("the guest gets no user numbers")
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def limit() -> None:
    """Set the limits, or keep lower ones."""
    for which, value in LIMITS.items():
        hard = resource.getrlimit(which)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (most, most))


def switch_user(user: User, groups: list[int]) -> None:
    """Take the numbers of a user, and give up whatever is not needed to run programs.

    Where there is one number only, a user namespace shows it as the wanted one.

    Raises:
        OSError: The system refuses it.
    """
    _drop_capabilities()
    if is_alone():
        if user.uid:
            _show_as(user.uid, user.gid)
    else:
        os.setgroups(groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    seccomp.apply(pretends_chown=is_alone())


def peer_uid(pid: int, seen: int) -> int:
    """Return the user number that a process has in its own eyes."""
    with open(f"/proc/{pid}/uid_map", encoding="ascii") as stream:
        inside, outside, count = map(int, stream.readline().split())
    return inside + seen - outside if outside <= seen < outside + count else seen


def _drop_capabilities() -> None:
    """Make sure that no program gets more than is kept, by whatever way it comes to be root."""
    for number in range(_CAPABILITIES):
        if number not in _KEPT_CAPABILITIES:
            _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def _show_as(uid: int, gid: int) -> None:
    _unshare(_CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} 0 1"), ("gid_map", f"{gid} 0 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
            stream.write(text)


def _unshare(flags: int) -> None:
    if _LIBC.unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
