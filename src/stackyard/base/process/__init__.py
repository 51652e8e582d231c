"""The only package that starts other programs.

- `run` starts a program and waits for it. The program has no shell and no terminal, its own session and
  process group, and exactly the given environment. Its output arrives line by line.
- `watch_ends` makes starts cheap for the length of a block, for a command that starts hundreds of programs.
- `start_detached` starts a server of stackyard in the background, and returns when the server is ready.
- `start_attached` starts a program that runs beside this one and gets file descriptors to communicate.
- `worker.Worker` runs functions of stackyard in a process that can be ended.
- `run_in_foreground` gives a program the terminal, for example an editor. `become` replaces this process.

A timeout or a cancelled task first interrupts the program and kills it only after a grace period, because
OpenTofu needs that time to save its state. A second request to stop kills at once. If stackyard itself is
killed, the kernel asks the program to stop. A program that writes without end is stopped before it fills
the memory.

This package knows no program by name. Secrets go through the environment or standard input. An argument
that holds a secret is refused, because every user of the machine can read arguments.
"""

from __future__ import annotations

from stackyard.base.process.attached import Attached, start_attached
from stackyard.base.process.command import (
    Command,
    Completed,
    OnBytes,
    OnLine,
    ProcessFailedError,
    ProcessOutputError,
    ProcessTimeoutError,
    ProcessUnstoppableError,
    ProgramMissingError,
    ProgramUnusableError,
    SecretArgumentError,
    Stream,
    environment,
)
from stackyard.base.process.detached import Detached, start_detached
from stackyard.base.process.end_watch import watch_ends
from stackyard.base.process.foreground import run_in_foreground
from stackyard.base.process.replace import replace_process
from stackyard.base.process.run_program import run

__all__ = [
    "Attached",
    "Command",
    "Completed",
    "Detached",
    "OnBytes",
    "OnLine",
    "ProcessFailedError",
    "ProcessOutputError",
    "ProcessTimeoutError",
    "ProcessUnstoppableError",
    "ProgramMissingError",
    "ProgramUnusableError",
    "SecretArgumentError",
    "Stream",
    "environment",
    "replace_process",
    "run",
    "run_in_foreground",
    "start_attached",
    "start_detached",
    "watch_ends",
]
