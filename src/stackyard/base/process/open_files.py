"""How many files and sockets this process may have open at once, and what follows from it.

A server raises its soft limit to the hard one, and takes on no more than it has descriptors for. Programs
that it starts get the limit that it was started with: some of them use `select`, which knows 1,024
descriptors, and some close every number up to the limit one by one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "has_room",
    "is_shortage",
    "limit_for_programs",
    "lower_limit",
    "most_programs",
    "program_limit",
    "raise_limit",
    "restore_limit",
]

# What is left for files, programs and stores when connections have taken the rest: a part of the limit.
_RESERVED_PART = 4
_RESERVED_AT_LEAST = 32
# What one program takes while it is started, with room to spare.
_FILES_OF_A_PROGRAM = 16
_SHORTAGES = (errno.EMFILE, errno.ENFILE)

_before: tuple[int, int] | None = None


def raise_limit() -> int:
    """Raise the soft limit of this process to the hard one; return what it is now."""
    global _before
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return _count(soft)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        # The system allows less than it says; what we have has to do.
        return _count(soft)
    if _before is None:
        _before = (soft, hard)
    return _count(hard)


def limit_for_programs() -> tuple[int, int] | None:
    """Return the limit of programs that we start; None where it is our own."""
    return _before


def restore_limit(limit: tuple[int, int] | None) -> None:
    """Set the limit of this process back, where it was raised; for the moment before a program begins."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def lower_limit(pid: int) -> None:
    """Give a program that has just begun with our limit the one of programs, where ours was raised."""
    if _before is not None and sys.platform == "linux":
        # It may have ended, or belong to another user by now.
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, _before)


@contextlib.contextmanager
def program_limit() -> Iterator[None]:
    """Have the limit of programs for the length of the block: what is started in it inherits that."""
    now = resource.getrlimit(resource.RLIMIT_NOFILE)
    restore_limit(_before)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, now)


def has_room(descriptor: int) -> bool:
    """Return whether one more connection leaves enough descriptors for all else that this process opens.

    Args:
        descriptor: Any open one. The system gives a copy of it the lowest number that is free, which says
            how many are in use without counting them.
    """
    try:
        lowest = os.dup(descriptor)
    except OSError:
        return False
    os.close(lowest)
    soft = _count(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return lowest < soft - _compute_reserve(soft)


def most_programs() -> int:
    """Return how many programs may run at once beside the connections of a server."""
    reserved = _compute_reserve(_count(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    return max(2, reserved // _FILES_OF_A_PROGRAM)


def is_shortage(err: BaseException | None) -> bool:
    """Return whether something failed because this process, or the machine, has no descriptor left."""
    seen: set[int] = set()
    while err is not None and id(err) not in seen:
        if isinstance(err, OSError) and err.errno in _SHORTAGES:
            return True
        seen.add(id(err))
        err = err.__cause__ or err.__context__
    return False


def _compute_reserve(soft: int) -> int:
    return max(_RESERVED_AT_LEAST, soft // _RESERVED_PART)


def _count(limit: int) -> int:
    # Without a limit the system's own largest number of files counts; any large one will do here.
    return 2**20 if limit == resource.RLIM_INFINITY else limit
