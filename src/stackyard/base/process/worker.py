"""Running a function of ours in a process of its own, which ends when its time is over.

A thread cannot be ended, a pattern that takes for ever holds up every other thread, and a crash in a library
written in C takes the whole program with it. So a server gives work on content that outsiders wrote to a
`Worker`: the server answers meanwhile, and work that takes too long, needs too much memory or crashes is an
error like any other.

Function, arguments and result are pickled: the function is at the top of a module of stackyard.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from stackyard.base.errors import InternalError, StackyardError
from stackyard.base.process.attached import start_attached
from stackyard.base.process.command import Command, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from stackyard.base.process.attached import Attached

__all__ = ["WorkCrashedError", "WorkFailedError", "WorkTimeoutError", "Worker"]

# Isolated, so that neither the folder it runs in nor the environment decides what is imported.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]\n"
    "from stackyard.base.process.worker import serve_calls; serve_calls(int(sys.argv[1]))"
)
_HEADER_BYTES = 8
_CHUNK_BYTES = 2**20
_LARGEST_ANSWER_BYTES = 256 * 2**20
_MEMORY_BYTES = 2 * 2**30
# Servers come first: the kernel lets work in the background wait for them.
_NICE = 5

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WorkTimeoutError(StackyardError):
    """A function that was run in a process of its own did not end in time, and was ended."""

    code = "E-WORK-TIMEOUT"
    summary = "Work on some content took too long"
    default_remedy = "Look at the content that is named: it is far too large, or an attack on its reader."


class WorkCrashedError(StackyardError):
    """A process that ran a function of ours ended without an answer: a crash, or the kernel ended it."""

    code = "E-WORK-CRASHED"
    summary = "Work on some content crashed"
    default_remedy = "Look at the content that is named: it is damaged, or an attack on its reader."


class WorkFailedError(InternalError):
    """A function that was run in a process of its own failed in a way that it should not."""

    code = "E-WORK-FAILED"
    summary = "Work on some content failed"


class Worker:
    """A process of ours that runs functions, one after the other; it starts with the first.

    Args:
        memory_bytes: How much memory it may use; work that needs more fails.
    """

    def __init__(self, *, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._turn = asyncio.Lock()
        self._running: Attached | None = None
        self._link: socket.socket | None = None

    async def __aenter__(self) -> Worker:
        """Return it; nothing is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        await self.close()

    @property
    def pid(self) -> int | None:
        """The process that runs now, if one does."""
        return self._running.pid if self._running is not None else None

    async def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts, timeout_s: float) -> T:
        """Run a function in the process, and return what it returns or raise what it raises.

        Args:
            function: What to run; its module and name have to lead to it.
            arguments: What it is given.
            timeout_s: How long it may take, its turn and the start of the process included.

        Raises:
            WorkTimeoutError: It took longer; the process was killed.
            WorkCrashedError: The process ended meanwhile.
            WorkFailedError: It raised something that cannot be passed on.
        """
        asked = pickle.dumps((function, arguments, self._memory_bytes))
        name = f"{function.__module__}.{function.__qualname__}"
        try:
            async with asyncio.timeout(timeout_s), self._turn:
                succeeded, result = await self._exchange(asked, name)
        except TimeoutError as err:
            raise WorkTimeoutError(f"`{name}` did not end within {timeout_s:g} s and was ended.") from err
        if succeeded:
            value: T = result
            return value
        raise _error(name, *result)

    async def close(self) -> None:
        """End the process, whatever it does."""
        link, self._link = self._link, None
        running, self._running = self._running, None
        if link is not None:
            link.close()
        if running is not None:
            await running.end()

    async def _exchange(self, asked: bytes, name: str) -> tuple[bool, Any]:
        try:
            link = await self._connect()
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(link, len(asked).to_bytes(_HEADER_BYTES) + asked)
            size = int.from_bytes(await _receive(link, _HEADER_BYTES))
            if size > _LARGEST_ANSWER_BYTES:
                raise WorkFailedError(f"`{name}` has an answer of {size} bytes, which is too large.")
            # The other side is our own program, and nothing that it reads decides what it pickles.
            answer: tuple[bool, Any] = pickle.loads(await _receive(link, size))  # noqa: S301
        except (OSError, EOFError) as err:
            raise WorkCrashedError(f"`{name}` crashed: {await self._describe_exit()}.") from err
        except BaseException:
            # No one will read the answer, so that the next call needs another process.
            await asyncio.shield(self.close())
            raise
        return answer

    async def _connect(self) -> socket.socket:
        if self._link is not None and self._running is not None:
            if not self._running.exited.done():
                return self._link
            await self.close()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        paths = [path for path in sys.path if path]
        command = Command(
            argv=(sys.executable, "-I", "-c", _PROGRAM, str(theirs.fileno()), *paths),
            env=environment(),
            keeps_output=False,
            grace_s=5.0,
        )
        with theirs:
            try:
                self._running = start_attached(command, inherited=(theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        self._link = ours
        return ours

    async def _describe_exit(self) -> str:
        """Return how the process ended, and forget it."""
        running = self._running
        if running is not None:
            await asyncio.wait({running.exited}, timeout=1.0)
        status = running.returncode if running is not None else 0
        await self.close()
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"the process was ended by {signal.Signals(-status).name}"
        return f"the process ended with status {status}"


async def _receive(link: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    received = bytearray()
    while len(received) < size:
        piece = await loop.sock_recv(link, min(_CHUNK_BYTES, size - len(received)))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)


def serve_calls(descriptor: int) -> None:
    """Run what is asked for over a socket until it closes; this is the other process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICE)
    with socket.socket(fileno=descriptor) as link, link.makefile("rb") as asked:
        link.set_inheritable(False)
        while header := asked.read(_HEADER_BYTES):
            answer = _answer(asked.read(int.from_bytes(header)))
            link.sendall(len(answer).to_bytes(_HEADER_BYTES) + answer)


def _answer(asked: bytes) -> bytes:
    try:
        # It comes from the process that started us.
        function, arguments, memory_bytes = pickle.loads(asked)  # noqa: S301
        _limit_memory(memory_bytes)
        return pickle.dumps((True, function(*arguments)))
    except Exception as err:
        return _failure(err)


def _failure(err: Exception) -> bytes:
    """Return an error for the other side, taken apart: many cannot be created again from their arguments."""
    try:
        return pickle.dumps((False, (type(err), err.args, err.__dict__)))
    except Exception:
        return pickle.dumps((False, (type(err), (str(err),), None)))


def _error(name: str, kind: type[Exception], arguments: tuple[Any, ...], fields: Any) -> Exception:
    """Return what to raise for an error of the other process."""
    if issubclass(kind, StackyardError) and fields is not None:
        err = kind.__new__(kind)
        err.args = arguments
        err.__dict__.update(fields)
        return err
    if issubclass(kind, MemoryError):
        return WorkCrashedError(f"`{name}` needs more memory than it may use.")
    said = ", ".join(map(str, arguments))
    return WorkFailedError(f"`{name}` failed: {kind.__name__}: {said}")


def _limit_memory(memory_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
