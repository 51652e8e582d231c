"""The program `stackyard`, and `python -m stackyard`: the one place that ends the process."""

from __future__ import annotations

import gc
import os
import signal
import stat
import sys

__all__ = ["run", "run_lab"]

_SAFE_UMASK = stat.S_IWGRP | stat.S_IWOTH


def run_lab() -> None:
    """Run `pvelab`: the same as `stackyard lab`."""
    run(["lab", *sys.argv[1:]])


def run(argv: list[str] | None = None) -> None:
    """Run a command line, by default that of this process, and exit with its status."""
    # An early Ctrl-C waits for the views, which say that it stopped; `main` lets it through.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _hold_standard_descriptors()
    _keep_others_from_writing()
    from stackyard.cli.main import main  # lazy: a Ctrl-C while this loads would be a traceback

    status = main(sys.argv[1:] if argv is None else argv)
    # All that is left goes with the process; to look for garbage among it takes longer than many a command.
    gc.freeze()
    sys.exit(status)


def _keep_others_from_writing() -> None:
    """Make nothing that other users may write, whatever the umask of who started us.

    One that lets a group write is someone's choice; one that lets everyone write is none.
    """
    given = os.umask(_SAFE_UMASK)
    os.umask(given if given & stat.S_IWOTH else given | _SAFE_UMASK)


def _hold_standard_descriptors() -> None:
    """Give descriptors 0 to 2 to no one else: a file opened as one of them would receive stray output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system takes the lowest number that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    run()
