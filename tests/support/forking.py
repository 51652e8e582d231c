"""Runs of the program that begin where one stands that has loaded everything.

To start Python and to load what `stackyard plan` needs takes most of a short run, and the tests make many
hundreds. So a process that did nothing but load is forked for each: what runs is the whole program, with its
own process, environment, folder, streams, signals and end. What is about the start itself, such as what gets
loaded and when, is tested with a new start: `tests.support.cli.fresh`.

python -m tests.support.forking DESCRIPTOR
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
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

__all__ = ["Forked", "fork_program", "run_forked"]

ROOT = Path(__file__).parents[2]
# What the commands load only when they need it.
LATER = (
    "aiohttp.web",
    "asyncssh",
    "boto3",
    "botocore.client",
    "grpc.aio",
    "stackyard.lab",
)
PACKAGES = tuple(
    f"stackyard.{name}" for name in "cli path state engine controller provider deployment inventory".split()
)
DESCRIPTORS = 4  # The three standard streams, and where the end is told.
_HEAD = struct.Struct("!I")
_STATUS = struct.Struct("!i")


# --- The side of the tests


@dataclass(frozen=True)
class Forked:
    """A run of the program: its process, and the socket on which its end is told."""

    pid: int
    _told: socket.socket

    def wait(self) -> int:
        """Wait for its end; return its status, or the number of the signal that ended it, below zero."""
        try:
            status = _received(self._told, _STATUS.size)
        finally:
            self._told.close()
        return int(_STATUS.unpack(status)[0])


def run_forked(
    arguments: Sequence[str], *, cwd: Path | None, env: Mapping[str, str], timeout_s: float
) -> tuple[int, bytes, bytes]:
    """Run `stackyard ARGUMENTS` with nothing on its standard input; return its status, output and errors.

    As with a pipe to any program, the output has ended when nobody holds it any more.
    """
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    with open(os.devnull, "rb") as nothing:
        try:
            forked = fork_program(arguments, cwd=cwd, env=env, streams=(nothing.fileno(), out_end, err_end))
        finally:
            os.close(out_end)
            os.close(err_end)
    try:
        texts = _read_all((out, err), time.monotonic() + timeout_s)
    except TimeoutError:
        os.kill(forked.pid, signal.SIGKILL)
        raise
    finally:
        os.close(out)
        os.close(err)
        status = forked.wait()
    return status, texts[out], texts[err]


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


def fork_program(
    arguments: Sequence[str], *, cwd: Path | None, env: Mapping[str, str], streams: tuple[int, int, int]
) -> Forked:
    """Begin a run of `stackyard ARGUMENTS` on these descriptors as standard input, output and error."""
    ours, theirs = socket.socketpair()
    with theirs:
        handed = array.array("i", [*streams, theirs.fileno()])
        _loaded().sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
    request = {
        "arguments": [os.fsencode(word).hex() for word in arguments],
        "environment": {os.fsencode(k).hex(): os.fsencode(v).hex() for k, v in env.items()},
        "cwd": os.fsencode(cwd or Path.cwd()).hex(),
    }
    body = json.dumps(request).encode()
    ours.sendall(_HEAD.pack(len(body)) + body)
    pid = int(_STATUS.unpack(_received(ours, _STATUS.size))[0])
    return Forked(pid, ours)


@functools.cache
def _loaded() -> socket.socket:
    """Start what is forked: one for each test process, and it ends when nobody can ask it any more."""
    # What begins in one message ends in it, whichever thread sends.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forking", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _received(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise RuntimeError("The process that is forked for each run is gone.")
        data += more
    return data


# --- The side of the program


def serve(descriptor: int) -> None:
    """Fork for each request until the tests are over; returns in no process."""
    _load()
    requests = socket.socket(fileno=descriptor)
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is requests:
                if not _fork(requests, selector):
                    os._exit(0)
            else:
                _tell(key, selector)


def _load() -> None:
    # As the program has it before it loads gRPC, whose own care for forks is for processes with threads.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    names = list(LATER)
    for name in PACKAGES:
        package = importlib.import_module(name)
        names += [one.name for one in pkgutil.walk_packages(package.__path__, f"{name}.")]
    for name in names:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread would not survive a fork"
    # What is never looked at stays shared with those that are forked.
    gc.collect()
    gc.freeze()


def _fork(requests: socket.socket, selector: selectors.BaseSelector) -> bool:
    """Take one request; tell whether there was one."""
    handed = array.array("i")
    room = socket.CMSG_SPACE(DESCRIPTORS * handed.itemsize)
    data, ancillary, _, _ = requests.recvmsg(1, room)
    if not data:
        return False
    ((_, _, numbers),) = ancillary
    handed.frombytes(numbers[: DESCRIPTORS * handed.itemsize])
    told = socket.socket(fileno=handed[-1])
    pid = os.fork()
    if pid == 0:
        selector.close()
        requests.close()
        _become(told, handed[:-1])
    for number in handed[:-1]:
        os.close(number)
    told.sendall(_STATUS.pack(pid))
    # Nothing else waits for it, so its number is its own until then.
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))
    return True


def _tell(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    pid, told = key.data
    _, status = os.waitpid(pid, 0)
    selector.unregister(key.fileobj)
    os.close(key.fd)
    # Who asked may not have waited for the end.
    with told, contextlib.suppress(BrokenPipeError):
        told.sendall(_STATUS.pack(os.waitstatus_to_exitcode(status)))


def _become(told: socket.socket, streams: array.array[int]) -> None:
    """Be the program that was asked for, to its end."""
    status = 70
    try:
        (size,) = _HEAD.unpack(_received(told, _HEAD.size))
        request = json.loads(_received(told, size))
        told.close()
        for number, handed in enumerate(streams):
            os.dup2(handed, number)
            os.close(handed)
        sys.stdin, sys.stdout, sys.stderr = _standard_streams()
        os.environb.clear()
        for name, value in request["environment"].items():
            os.environb[bytes.fromhex(name)] = bytes.fromhex(value)
        time.tzset()
        os.chdir(bytes.fromhex(request["cwd"]))
        sys.argv = ["stackyard", *(os.fsdecode(bytes.fromhex(word)) for word in request["arguments"])]
        status = _run()
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


def _run() -> int:
    """Run the program, and do at its end what Python does."""
    from stackyard.__main__ import run  # lazy: only the program's side needs it

    try:
        run()
    except SystemExit as err:
        status = err.code if isinstance(err.code, int) else int(err.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    else:
        status = 0
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
