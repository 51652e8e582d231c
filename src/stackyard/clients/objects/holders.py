"""Whether the process that holds something still runs, as far as this machine can tell for certain.

A holder writes down what tells its process from every other one. Whoever finds its lease on the same machine
looks at the process; on another machine nothing is known of it, and only its silence tells.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["describe_process", "is_process_gone", "is_this_machine"]

# The places of the state, the number of threads and the start time behind the name of the program.
_STATE, _THREADS, _START = 0, 17, 19
_ENDED = ("Z", "X")


@dataclass(frozen=True, slots=True)
class _Process:
    """A process as the kernel shows it."""

    state: str
    threads: int
    start: str

    @property
    def has_ended(self) -> bool:
        """Whether only its entry is left, which stays until its parent asks how it ended."""
        return self.state in _ENDED and self.threads <= 1


def describe_process() -> dict[str, str]:
    """Return what tells this process from every other one that this or another machine will ever have."""
    own = _look_at(os.getpid())
    return {**_machine(), "pid": str(os.getpid()), "start": "" if own is None else own.start}


def is_this_machine(facts: Mapping[str, str]) -> bool:
    """Return whether the processes of this machine are the ones that a holder speaks of."""
    ours = _machine()
    return all(value and facts.get(name) == value for name, value in ours.items())


def is_process_gone(facts: Mapping[str, str]) -> bool:
    """Return whether the process of a holder has certainly ended; False where that cannot be known."""
    pid = facts.get("pid", "")
    if not pid.isdecimal() or not facts.get("start") or not is_this_machine(facts):
        return False
    found = _look_at(int(pid))
    if found is not None:
        return found.start != facts["start"] or found.has_ended
    return not _exists(int(pid))


def _machine() -> dict[str, str]:
    """Return what processes have in common whose numbers mean the same.

    Containers of one machine share its boot, and with the network of the host its name too; their processes
    have numbers of their own.
    """
    return {"host": socket.gethostname(), "boot": _boot_id(), "namespace": _namespace()}


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _look_at(pid: int) -> _Process | None:
    """Return a process of this machine; None where there is none, or it is hidden from us."""
    try:
        # The name of the program, which is in brackets before the rest, may hold anything.
        parts = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return _Process(parts[_STATE], int(parts[_THREADS]), parts[_START])
    except (OSError, IndexError, ValueError):
        return None


def _exists(pid: int) -> bool:
    """Return whether there is a process, also where /proc hides those of other users (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
