"""Runs of the program that begin where one stands that has loaded everything.

To start Python and to load what `stackyard plan` needs takes most of a short run, and the tests make many
hundreds. So a process that did nothing but load is forked for each: what runs is the whole program, with its
own process, environment, folder, streams, signals and end. What is about the start itself, such as what gets
loaded and when, is tested with a new start: `tests.support.cli.fresh`.

python -m tests.support.forking DESCRIPTOR, with an open pipe as its standard input
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tests.support import forked_client
from tests.support.forked_client import NUMBER, PROGRAM, ask, read_exactly, read_number
from tests.support.processes import open_descriptors

__all__ = ["Forked", "fork_program", "run_forked", "write_forked_program"]

ROOT = Path(__file__).parents[2]
# What the commands load only when they need it.
LATER = ("aiohttp.web", "asyncssh", "boto3", "botocore.client", "grpc.aio", "pvelab.runtime.start")
PACKAGES = "cli path state engine controller provider sources inventory operator scenario".split()
STREAMS = 3
# What a server in the background holds for as long as its process lives, so that others know of it.
HELD_TO_THE_END = re.compile(r"/stackyard/(controllers|labs|services|lab|state)[^ ]*/lock$")
# Threads of the state service that a store keeps waiting are left behind, with their connections.
LEFT_BEHIND = "state-"


# --- The side of the tests


@dataclass(frozen=True)
class Forked:
    """A run of the program: its process, and the socket on which its end is told."""

    pid: int
    told: socket.socket

    def wait(self) -> int:
        """Wait for its end; return its status, or the number of the signal that ended it, below zero."""
        with self.told:
            return read_number(self.told)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def fork_program(
    arguments: Sequence[str],
    *,
    streams: tuple[int, int, int],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    entry: str = PROGRAM,
) -> Forked:
    """Begin a run on these descriptors as standard input, output and error; `entry` is `module:function`."""
    request: dict[str, object] = {
        "entry": entry,
        "arguments": list(arguments),
        "environment": dict(os.environ if env is None else env),
        "cwd": str(cwd or Path.cwd()),
    }
    return Forked(*ask(_address(), streams, request))


def run_forked(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    entry: str = PROGRAM,
    timeout_s: float,
) -> tuple[int, bytes, bytes]:
    """Run to its end with nothing on standard input; return status, output and errors.

    As with a pipe to any program, the output has ended when nobody holds it any more.
    """
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    with open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), out_end, err_end)
        try:
            forked = fork_program(arguments, streams=streams, cwd=cwd, env=env, entry=entry)
        finally:
            os.close(out_end)
            os.close(err_end)
    try:
        texts = _read_all((out, err), time.monotonic() + timeout_s)
    except BaseException:
        # Also where the test itself took too long.
        forked.kill()
        raise
    finally:
        os.close(out)
        os.close(err)
        status = forked.wait()
    return status, texts[out], texts[err]


def write_forked_program(path: Path) -> Path:
    """Write what is the program `stackyard` for a shell, where every run is forked."""
    client = shlex.join([sys.executable, "-I", "-S", str(forked_client.__file__), _address()])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {client} "$@"\n')
    path.chmod(0o755)
    return path


def _read_all(descriptors: tuple[int, int], end_s: float) -> dict[int, bytes]:
    parts: dict[int, list[bytes]] = {number: [] for number in descriptors}
    with selectors.DefaultSelector() as selector:
        for number in descriptors:
            selector.register(number, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0, end_s - time.monotonic()))
            if not ready:
                raise TimeoutError("The program does not end.")
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                parts[key.fd].append(data)
                if not data:
                    selector.unregister(key.fd)
    return {number: b"".join(found) for number, found in parts.items()}


@functools.cache
def _address() -> str:
    """Start what is forked, one for each test process; it ends with that."""
    path = Path(tempfile.gettempdir()) / f"stackyard-forking-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(128)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forking", str(listening.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )

    def end() -> None:
        path.unlink()
        # It ends when this does.
        process.communicate()

    atexit.register(end)
    return str(path)


# --- The side of the program


def serve(descriptor: int) -> None:
    """Fork for each request until the tests are over."""
    _load()
    requests = socket.socket(fileno=descriptor)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is requests:
                    _fork(requests, selector)
                else:
                    _tell(key, selector)


def _load() -> None:
    # As the program has it before it loads gRPC, whose own care for forks is for processes with threads.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    names = list(LATER)
    for name in PACKAGES:
        package = importlib.import_module(f"stackyard.{name}")
        names += [one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in names:
        importlib.import_module(name)
    _build_models()
    assert threading.active_count() == 1, "a thread would not survive a fork"
    # What is never looked at stays shared with those that are forked.
    gc.collect()
    gc.freeze()


def _build_models() -> None:
    """Build what checks values, which the program does when it first meets one of a kind."""
    from stackyard.desired.values import Value

    waiting = [Value]
    while waiting:
        found = waiting.pop()
        found.model_rebuild()
        waiting += found.__subclasses__()


def _fork(requests: socket.socket, selector: selectors.BaseSelector) -> None:
    told, _ = requests.accept()
    handed = array.array("i")
    size = STREAMS * handed.itemsize
    _, ancillary, _, _ = told.recvmsg(1, socket.CMSG_SPACE(size))
    if not ancillary:
        told.close()  # Who asked is gone.
        return
    handed.frombytes(ancillary[0][2][:size])
    pid = os.fork()
    if pid == 0:
        selector.close()
        requests.close()
        _become(told, handed)
    for number in handed:
        os.close(number)
    with contextlib.suppress(OSError):
        told.sendall(NUMBER.pack(pid))
    # Nothing else waits for it, so its number is its own until then.
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))


def _tell(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    pid, told = key.data
    _, status = os.waitpid(pid, 0)
    selector.unregister(key.fileobj)
    os.close(key.fd)
    # Who asked may not have waited for the end.
    with told, contextlib.suppress(OSError):
        told.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(told: socket.socket, streams: array.array[int]) -> None:
    """Be the program that was asked for, to its end."""
    status = 70
    try:
        with told:
            request = json.loads(read_exactly(told, read_number(told)))
        for number, handed in enumerate(streams):
            os.dup2(handed, number)
            os.close(handed)
        sys.stdin, sys.stdout, sys.stderr = _standard_streams()
        os.environ.clear()
        os.environ.update(request["environment"])
        # What was read from the environment of the process that loaded.
        time.tzset()
        tempfile.tempdir = None
        os.chdir(request["cwd"])
        sys.argv = ["stackyard", *request["arguments"]]
        status = _run(request["entry"])
    finally:
        # The other way out leads back to those who ask.
        os._exit(status)


def _standard_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Return the streams as Python makes them."""
    return (
        os.fdopen(0, encoding="utf-8", closefd=False),
        os.fdopen(1, "w", encoding="utf-8", closefd=False),
        os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False),
    )


def _left_open(before: set[str]) -> list[str]:
    """Return the descriptors that the program left open."""
    if any(_is_at_work(thread) for thread in threading.enumerate() if thread.name.startswith(LEFT_BEHIND)):
        return []
    if open_descriptors() - before:
        # A library may leave a broken connection to the collector, which the program froze at its end.
        gc.unfreeze()
        gc.collect()
    return [one for one in sorted(open_descriptors() - before) if not HELD_TO_THE_END.search(one)]


def _is_at_work(thread: threading.Thread) -> bool:
    # One that waits for work has been told to end.
    thread.join(1)
    return thread.is_alive()


def _run(entry: str) -> int:
    """Run the program, and do at its end what Python does."""
    module, _, name = entry.partition(":")
    before = open_descriptors()
    try:
        getattr(importlib.import_module(module), name)()
    except SystemExit as err:
        status = err.code if isinstance(err.code, int) else int(err.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    else:
        status = 0
    left = _left_open(before)
    if left and entry == PROGRAM:
        # Whoever started it looks at its status and at what it wrote: every test of a command tests this.
        sys.stderr.write(f"left open: {left}\n")
        status = 99
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or 120
    return status


if __name__ == "__main__":
    # Ctrl-C goes to all processes of a terminal: those that run say so, and this one simply ends.
    with contextlib.suppress(KeyboardInterrupt):
        serve(int(sys.argv[1]))
