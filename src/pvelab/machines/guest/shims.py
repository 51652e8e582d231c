"""The one entry of all shims: by the name that it was called with."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys

from .names import NODE_SHIMS, SHIMS

__all__ = ["main"]


def main() -> None:
    """Find who answers for the name, and end with the status that it returns."""
    name = os.path.basename(sys.argv[0])
    module = SHIMS.get(name) or NODE_SHIMS.get(name)
    if module is None:
        sys.stderr.write(f"{name}: command not found\n")
        raise SystemExit(127)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        status = importlib.import_module(f"guest.{module}").run(name, sys.argv[1:])
    except PermissionError as err:
        sys.stderr.write(f"{name}: {err.filename or ''}: Permission denied\n")
        status = 1
    except KeyboardInterrupt:
        status = 130
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    raise SystemExit(status)
