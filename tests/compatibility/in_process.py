"""Run a command line in this process, quicker than in one of its own; for verbs that start no server."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tests.support.cli import Ended

from stackyard.cli.main import main

__all__ = ["run_here"]


def run_here(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Ended:
    """Run the program to its end, with nothing on its standard input and no terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        _signals_kept(),
        open(os.devnull) as nothing,
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.dict("os.environ", env or {}),
        mock.patch.object(sys, "argv", ["stackyard", *arguments]),
        mock.patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(arguments)
    return Ended(status, _written(out), _written(err))


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore what Ctrl-C does, which the program changes at its end."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _written(stream: io.TextIOWrapper) -> str:
    data = stream.detach()
    assert isinstance(data, io.BytesIO)
    return data.getvalue().decode()
