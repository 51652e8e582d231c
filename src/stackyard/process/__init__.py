"""The one door to other programs.

`run` starts a program without a shell, in a session and process group of its own, with exactly the
environment it is given and no terminal to read from, streams its lines, and waits for it. Whatever ends the
wait (a timeout, a cancelled task), the program is interrupted first and killed only after a grace period,
because OpenTofu needs that time to save its state; a second request to stop kills at once. If we are killed
ourselves, the kernel asks the program to stop. A program that writes without end is stopped too, before it
fills the memory. `start_detached` is for the other kind: a server of ours that goes on in the background, and
has said that it is ready when we return. `start_attached` is for a program that runs beside us and has
descriptors of ours to talk over. `worker.Worker` runs functions of ours in a process that can be ended.
`run_in_foreground` gives a program the terminal, as an editor needs, and `become` our whole place.

It knows no program by name. Secrets go through the environment or standard input; an argument that holds one
is refused, because every user of the machine can read arguments.
"""

from __future__ import annotations

from stackyard.process.attached import Attached, start_attached
from stackyard.process.command import (
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
from stackyard.process.detached import Detached, start_detached
from stackyard.process.foreground import run_in_foreground
from stackyard.process.replacing import become
from stackyard.process.running import run

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
    "become",
    "environment",
    "run",
    "run_in_foreground",
    "start_attached",
    "start_detached",
]
