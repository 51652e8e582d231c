"""The lab's end of the socket that it shares with a guest's init: requests, answers, its questions."""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from pvelab.machines.machine import MachineError
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import SMALL

__all__ = ["InitLink", "InitSession"]

_MOST_BYTES = 200_000
_MOST_DESCRIPTORS = 4

OnQuestion = Callable[[int, Mapping[str, Any]], Awaitable[Any]]


@dataclass(slots=True, kw_only=True)
class InitSession:
    """A program that the init runs for us: when it has started, and how it ended."""

    number: int
    started: asyncio.Future[int | None] = field(repr=False)
    ended: asyncio.Future[int] = field(repr=False)


class InitLink:
    """Talks to an init.

    Args:
        sock: Our end of the socket pair.
        on_question: Called with the user number and the question of a program in the guest.
        on_network: Called with the socket of what is behind the guest's network interfaces.
    """

    def __init__(
        self, sock: socket.socket, on_question: OnQuestion, on_network: Callable[[socket.socket], None]
    ) -> None:
        self._sock = sock
        self._on_network = on_network
        self._on_question = on_question
        self._loop = asyncio.get_running_loop()
        self._numbers = 0
        self._sessions: dict[int, InitSession] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.up: asyncio.Future[None] = self._loop.create_future()
        self.is_open = True
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._read)

    async def tell(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send a message.

        Raises:
            MachineError: No one is there, or it is too large.
        """
        data = orjson.dumps(message)
        beside = []
        if descriptors:
            beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())]
        while self.is_open:
            try:
                self._sock.sendmsg([data], beside)
            except BlockingIOError:
                await self._writable()
            except OSError as err:
                raise MachineError(f"A guest does not take a message: {err.strerror}.") from err
            else:
                return
        raise MachineError("The guest has stopped.")

    async def ask(self, message: Mapping[str, Any]) -> Any:
        """Ask something and return the answer.

        Raises:
            MachineError: The guest stopped.
        """
        self._numbers += 1
        number = self._numbers
        waiting: asyncio.Future[Any] = self._loop.create_future()
        self._answers[number] = waiting
        try:
            await self.tell({**message, "id": number})
            return await waiting
        finally:
            self._answers.pop(number, None)

    async def start(self, message: Mapping[str, Any], descriptors: tuple[int, ...]) -> InitSession:
        """Have a program started.

        Raises:
            MachineError: The guest stopped.
        """
        self._numbers += 1
        session = InitSession(
            number=self._numbers, started=self._loop.create_future(), ended=self._loop.create_future()
        )
        self._sessions[session.number] = session
        await self.tell({**message, "do": "run", "id": session.number}, descriptors)
        return session

    async def signal(self, session: InitSession, number: int) -> None:
        """Send a signal to a program and what it started."""
        with contextlib.suppress(MachineError):
            await self.tell({"do": "signal", "id": session.number, "number": number})

    def close(self) -> None:
        """Close the socket; whoever waits learns that the guest stopped."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        gone = MachineError("The guest has stopped.")
        waiting: list[asyncio.Future[Any]] = [self.up, *self._answers.values()]
        for session in self._sessions.values():
            waiting += [session.started, session.ended]
        for one in waiting:
            if not one.done():
                one.set_exception(gone)
                # Not everyone waits for both ends of a program.
                one.exception()
        for task in self._tasks:
            task.cancel()

    async def _writable(self) -> None:
        free: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._sock.fileno(), _settle, free)
        try:
            await free
        finally:
            if self.is_open:
                self._loop.remove_writer(self._sock.fileno())

    def _read(self) -> None:
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, beside, _, _ = self._sock.recvmsg(_MOST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, beside = b"", []
        descriptors: list[int] = []
        for level, kind, content in beside:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                descriptors += numbers
        if not data:
            self.close()
            return
        try:
            self._take(parse_json(data, SMALL), descriptors)
        except (ValueError, TypeError, KeyError, AttributeError):
            # Whatever it is that speaks there, it is no init of ours any more.
            self.close()

    def _take(self, message: Mapping[str, Any], descriptors: list[int]) -> None:
        terminal = descriptors.pop(0) if descriptors else None
        for number in descriptors:
            os.close(number)
        if "network" in message and terminal is not None:
            self._on_network(socket.socket(fileno=terminal))
            return
        if "up" in message and not self.up.done():
            self.up.set_result(None)
        elif "question" in message:
            task = self._loop.create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif message.get("id") in self._answers:
            waiting = self._answers[int(message["id"])]
            if not waiting.done():
                waiting.set_result(message.get("answer"))
        elif message.get("id") in self._sessions:
            terminal = self._note(self._sessions[int(message["id"])], message, terminal)
        if terminal is not None:
            os.close(terminal)

    def _note(self, session: InitSession, message: Mapping[str, Any], terminal: int | None) -> int | None:
        """Note how a program fares; return a descriptor that no one wants."""
        if "started" in message and not session.started.done():
            session.started.set_result(terminal)
            return None
        if "status" in message and not session.ended.done():
            if not session.started.done():
                session.started.set_exception(MachineError(str(message.get("error", "It does not start."))))
                session.started.exception()
            session.ended.set_result(int(message["status"]))
            self._sessions.pop(session.number, None)
        return terminal

    async def _answer(self, message: Mapping[str, Any]) -> None:
        answer = await self._on_question(int(message.get("uid", -1)), message.get("ask") or {})
        with contextlib.suppress(MachineError):
            await self.tell({"do": "answer", "question": message["question"], "answer": answer})


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
