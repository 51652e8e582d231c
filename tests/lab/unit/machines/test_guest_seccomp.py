"""The filter of a guest's calls: tried call by call in a real process."""

from __future__ import annotations

import errno
import json
import platform
import subprocess
import sys

import pytest

from pvelab.machines.guest import seccomp

COLUMN = {"x86_64": 1, "aarch64": 2}.get(platform.machine())
pytestmark = pytest.mark.skipif(COLUMN is None, reason="the filter knows x86-64 and arm64")

TRYING = """
import ctypes, importlib.util, json, os, sys
# By its file, as in a guest: the rest of the package is not there.
spec = importlib.util.spec_from_file_location("seccomp", sys.argv[2])
seccomp = sys.modules["seccomp"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(seccomp)
seccomp.apply(pretends_chown=False)
libc = ctypes.CDLL(None, use_errno=True)
def tried(arguments):
    ctypes.set_errno(0)
    done = libc.syscall(*[ctypes.c_long(argument) for argument in (*arguments, *[0] * (6 - len(arguments)))])
    return ctypes.get_errno() if done == -1 else 0
answers = [tried(arguments) for arguments in json.loads(sys.argv[1])]
# What programs do all day still works under the filter.
assert os.fork() or os._exit(0) is None
print(json.dumps([*answers, os.waitstatus_to_exitcode(os.wait()[1])]))
"""
CLONE, IOCTL, PERSONALITY, GETPID = (
    (56, 16, 135, 39) if platform.machine() == "x86_64" else (220, 29, 92, 172)
)


def tried(*calls: tuple[int, ...]) -> list[int]:
    """Make calls under the filter, and return how the kernel answered each."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", TRYING, json.dumps(calls), seccomp.__file__],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[int] = json.loads(done.stdout)
    # The last one is how a child ended.
    assert answers.pop() == 0
    return answers


def numbers() -> dict[str, int]:
    rows = [line.split() for line in seccomp.REFUSED.strip().splitlines()]
    return {row[0]: int(row[COLUMN or 1]) for row in rows if row[COLUMN or 1] != "-"}


def test_every_call_of_the_list_is_refused() -> None:
    known = numbers()
    answers = dict(zip(known, tried(*((number,) for number in known.values())), strict=True))
    assert {name for name, answer in answers.items() if answer != errno.EPERM} == set()


@pytest.mark.parametrize(
    "name", ["io_uring_setup", "open_by_handle_at", "name_to_handle_at", "process_vm_readv", "pidfd_getfd"]
)
def test_ways_around_the_other_checks_are_on_the_list(name: str) -> None:
    assert name in numbers()


def test_calls_that_nobody_has_looked_at_do_not_exist() -> None:
    assert tried((470,), (1000,), (435,)) == [errno.ENOSYS] * 3


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is of x86-64")
def test_the_other_numbers_of_the_same_calls_do_not_exist() -> None:
    x32 = 0x40000000
    assert tried((x32 + GETPID,), (x32 + 165,), (x32 + 545,)) == [errno.ENOSYS] * 3


def test_arguments_decide_where_a_call_has_good_uses() -> None:
    new_user, same = 0x10000000, 0xFFFFFFFF
    assert tried((CLONE, new_user), (IOCTL, 0, 0x5412), (IOCTL, 0, 0x541C)) == [errno.EPERM] * 3
    # The kernel reads 32 bits of a request.
    assert tried((IOCTL, 0, 0x100005412)) == [errno.EPERM]
    assert tried((PERSONALITY, same), (PERSONALITY, 0), (GETPID,)) == [0, 0, 0]
    assert tried((PERSONALITY, 0x0400000), (PERSONALITY, 0x0040000)) == [errno.EPERM] * 2
