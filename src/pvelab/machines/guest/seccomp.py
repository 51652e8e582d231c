"""Calls of the kernel that a program in a guest has no business with are refused (seccomp).

Namespaces and mounts of its own would only widen what of the kernel it can reach; handles of files and rings
of io_uring reach past other checks, memory of other processes and the kernel's keys and log belong to the
host. A call that is newer than this list is unknown, and refused. In a sandbox with one user
number, changes of ownership seem to succeed and change nothing: installers and Ansible make them all the
time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass

__all__ = ["REFUSED", "apply"]

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_EPERM = 1
_ENOSYS = 38
_NAMESPACES = 0x7E020000
_LOAD, _EQUAL, _GREATER, _ANY_SET, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
# Where the kernel puts the number of the call, the architecture, and the low half of the arguments.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24

# Refused calls, with their numbers on x86-64 and on arm64 (the common list of newer machines).
REFUSED = """
mount 165 40
umount2 166 39
pivot_root 155 41
open_tree 428 428
move_mount 429 429
fsopen 430 430
fsconfig 431 431
fsmount 432 432
fspick 433 433
mount_setattr 442 442
statmount 457 457
listmount 458 458
open_tree_attr 467 467
unshare 272 97
setns 308 268
name_to_handle_at 303 264
open_by_handle_at 304 265
io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
kcmp 312 272
pidfd_getfd 438 438
process_madvise 440 440
userfaultfd 323 282
bpf 321 280
perf_event_open 298 241
fanotify_init 300 262
lookup_dcookie 212 18
add_key 248 217
request_key 249 218
keyctl 250 219
init_module 175 105
finit_module 313 273
delete_module 176 106
create_module 174 -
get_kernel_syms 177 -
query_module 178 -
kexec_load 246 104
kexec_file_load 320 294
reboot 169 142
swapon 167 224
swapoff 168 225
acct 163 89
quotactl 179 60
quotactl_fd 443 443
nfsservctl 180 42
syslog 103 116
vhangup 153 58
settimeofday 164 170
clock_settime 227 112
adjtimex 159 171
clock_adjtime 305 266
mbind 237 235
set_mempolicy 238 237
migrate_pages 256 238
move_pages 279 239
set_mempolicy_home_node 450 450
iopl 172 -
ioperm 173 -
modify_ldt 154 -
uselib 134 -
_sysctl 156 -
ustat 136 -
sysfs 139 -
"""
# The last call that was looked at. Later ones, and those of x32, which have a high bit set, are unknown.
_HIGHEST = 469
# Typing into a terminal, also that of the console: TIOCSTI, TIOCLINUX.
_TERMINAL_INPUT = (0x5412, 0x541C)
# Linux, 32 bits, an old version number, and the question: all else weakens what protects programs.
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)


@dataclass(frozen=True)
class _Machine:
    """The numbers of one kind of machine."""

    architecture: int
    column: int
    clone: int
    ioctl: int
    personality: int
    # chown, fchown, lchown, fchownat
    chown: tuple[int, ...]
    clone3: int = 435

    @property
    def refused(self) -> tuple[int, ...]:
        numbers = [line.split()[self.column] for line in REFUSED.strip().splitlines()]
        return tuple(int(number) for number in numbers if number != "-")


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 1, clone=56, ioctl=16, personality=135, chown=(92, 93, 94, 260)),
    "aarch64": _Machine(0xC00000B7, 2, clone=220, ioctl=29, personality=92, chown=(54, 55)),
}


def apply(*, pretends_chown: bool) -> None:
    """Refuse these calls to this process and all that it starts, for good."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return
    program = _program(known, pretends_chown=pretends_chown)
    buffer = ctypes.create_string_buffer(program, len(program))

    class _Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]

    what = _Filter(len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(what), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _program(machine: _Machine, *, pretends_chown: bool) -> bytes:
    """Return the filter: instructions of eight bytes each."""
    steps = [
        _step(_LOAD, 0, 0, _ARCHITECTURE),
        _step(_EQUAL, 1, 0, machine.architecture),
        # Another architecture has other numbers: none of its calls is known to be harmless.
        _step(_RETURN, 0, 0, _ERRNO | _ENOSYS),
        _step(_LOAD, 0, 0, _NUMBER),
        _step(_GREATER, 0, 1, _HIGHEST),
        _step(_RETURN, 0, 0, _ERRNO | _ENOSYS),
    ]
    for number in machine.refused:
        steps += [_step(_EQUAL, 0, 1, number), _step(_RETURN, 0, 0, _ERRNO | _EPERM)]
    for number in machine.chown if pretends_chown else ():
        steps += [_step(_EQUAL, 0, 1, number), _step(_RETURN, 0, 0, _ERRNO)]
    # The flags of clone3 are out of sight; without it the C library falls back to clone.
    steps += [_step(_EQUAL, 0, 1, machine.clone3), _step(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    namespaces = [_step(_ANY_SET, 0, 1, _NAMESPACES), _step(_RETURN, 0, 0, _ERRNO | _EPERM)]
    typing = [_refuse(request) for request in _TERMINAL_INPUT]
    known = [_step(_EQUAL, len(_PERSONALITIES) - number, 0, one) for number, one in enumerate(_PERSONALITIES)]
    steps += _inspect_argument(machine.clone, _FIRST, namespaces)
    steps += _inspect_argument(machine.ioctl, _SECOND, typing)
    steps += _inspect_argument(machine.personality, _FIRST, [*known, _step(_RETURN, 0, 0, _ERRNO | _EPERM)])
    return b"".join([*steps, _step(_RETURN, 0, 0, _ALLOW)])


def _inspect_argument(number: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Return steps that look at an argument of one call; what they do not refuse is allowed."""
    rest = [_step(_LOAD, 0, 0, argument), *steps, _step(_RETURN, 0, 0, _ALLOW)]
    length = sum(len(step) for step in rest) // 8
    return [_step(_EQUAL, 0, length, number), *rest]


def _refuse(value: int) -> bytes:
    return _step(_EQUAL, 0, 1, value) + _step(_RETURN, 0, 0, _ERRNO | _EPERM)


def _step(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
