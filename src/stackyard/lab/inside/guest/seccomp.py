"""Calls of the kernel that a program in a guest has no business with are refused (seccomp).

Namespaces and mounts of its own would only widen what of the kernel it can reach. In a sandbox with one user
number, changes of ownership seem to succeed and change nothing: installers and Ansible make them all the
time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

__all__ = ["apply"]

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_EPERM = 1
_ENOSYS = 38
_NAMESPACES = 0x7E020000
_LOAD, _EQUAL, _ANY_SET, _RETURN = 0x20, 0x15, 0x45, 0x06

# The numbers differ between machines: x86-64, and the common list of newer ones.
_MACHINES = {
    "x86_64": (
        0xC000003E,
        {"clone": 56, "clone3": 435},
        # mount, umount2, pivot_root, unshare, setns, swapon, swapoff, reboot, init_module, delete_module,
        # kexec_load, add_key, request_key, keyctl, perf_event_open, finit_module, kexec_file_load, bpf,
        # userfaultfd, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr, ptrace
        (
            165,
            166,
            155,
            272,
            308,
            167,
            168,
            169,
            175,
            176,
            246,
            248,
            249,
            250,
            298,
            313,
            320,
            321,
            323,
            428,
            429,
            430,
            431,
            432,
            433,
            442,
            101,
        ),
        # chown, fchown, lchown, fchownat
        (92, 93, 94, 260),
    ),
    "aarch64": (
        0xC00000B7,
        {"clone": 220, "clone3": 435},
        (
            40,
            39,
            41,
            97,
            268,
            224,
            225,
            142,
            105,
            106,
            104,
            217,
            218,
            219,
            241,
            273,
            294,
            280,
            282,
            428,
            429,
            430,
            431,
            432,
            433,
            442,
            117,
        ),
        (54, 55),
    ),
}


def apply(*, pretends_chown: bool) -> None:
    """Refuse these calls to this process and all that it starts, for good."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return
    program = _program(*known, pretends_chown=pretends_chown)
    buffer = ctypes.create_string_buffer(program, len(program))

    class _Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]

    what = _Filter(len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(what), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _program(
    architecture: int,
    clones: dict[str, int],
    refused: tuple[int, ...],
    chown: tuple[int, ...],
    *,
    pretends_chown: bool,
) -> bytes:
    """Return the filter: instructions of eight bytes each."""
    steps = [
        _step(_LOAD, 0, 0, 4),
        _step(_EQUAL, 1, 0, architecture),
        # Another architecture has other numbers: none of its calls is known to be harmless.
        _step(_RETURN, 0, 0, _ERRNO | _ENOSYS),
        _step(_LOAD, 0, 0, 0),
    ]
    for number in refused:
        steps += [_step(_EQUAL, 0, 1, number), _step(_RETURN, 0, 0, _ERRNO | _EPERM)]
    for number in chown if pretends_chown else ():
        steps += [_step(_EQUAL, 0, 1, number), _step(_RETURN, 0, 0, _ERRNO)]
    # The flags of clone3 are out of sight; without it the C library falls back to clone.
    steps += [_step(_EQUAL, 0, 1, clones["clone3"]), _step(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    steps += [
        _step(_EQUAL, 0, 3, clones["clone"]),
        _step(_LOAD, 0, 0, 16),
        _step(_ANY_SET, 0, 1, _NAMESPACES),
        _step(_RETURN, 0, 0, _ERRNO | _EPERM),
        _step(_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(steps)


def _step(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
