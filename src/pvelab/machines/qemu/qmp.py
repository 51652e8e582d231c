"""Talking to QEMU (QMP) and to the agent in the guest: JSON objects over one socket each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.machines.machine import MachineError
from stackyard.base.documents.jsontext import JsonError, parse_json

if TYPE_CHECKING:
    import socket

__all__ = ["Agent", "AgentRefusedError", "Monitor", "OnEvent"]

OnEvent = Callable[[Mapping[str, Any]], None]

_ANSWER_TIMEOUT_S = 60.0
_LONGEST_LINE = 64 * 2**20
# Tells the agent to forget what half a request someone left in its line.
_FLUSH = b"\xff"


class AgentRefusedError(MachineError):
    """The agent of a real guest answered that it does not do what it was asked for."""

    code = "E-LAB-AGENT"
    summary = "The agent of a guest refused"
    default_remedy = "The message is the agent's own."


class Monitor:
    """QEMU's own control socket.

    Args:
        on_event: Called with every event that QEMU reports.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def connect(self, sock: socket.socket) -> None:
        """Greet QEMU over a connected socket.

        Raises:
            MachineError: It does not answer.
        """
        reader, self._writer = await asyncio.open_connection(sock=sock, limit=_LONGEST_LINE)
        self._reading = asyncio.create_task(self._read(reader))
        await self.execute("qmp_capabilities")

    async def execute(self, command: str, **arguments: Any) -> Any:
        """Have QEMU do something and return what it answers.

        Raises:
            MachineError: QEMU refuses, or is gone.
        """
        if self._writer is None or self._reading is None or self._reading.done():
            raise MachineError(f"QEMU is not there to be asked for {command}.")
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        request = {"execute": command, "id": number, **({"arguments": arguments} if arguments else {})}
        try:
            self._writer.write(orjson.dumps(request) + b"\n")
            await self._writer.drain()
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                return await answer
        except (OSError, TimeoutError) as err:
            raise MachineError(f"QEMU does not answer {command}.") from err
        finally:
            self._waiting.pop(number, None)

    async def human(self, line: str) -> str:
        """Run a command of QEMU's human monitor, for the little that has no other way."""
        return str(await self.execute("human-monitor-command", **{"command-line": line}))

    async def close(self) -> None:
        """Hang up."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                message = parse_json(line)
                if "event" in message:
                    self._on_event(message)
                    continue
                answer = self._waiting.get(message.get("id", 0))
                if answer is None or answer.done():
                    continue
                if "error" in message:
                    answer.set_exception(MachineError(f"QEMU says: {message['error'].get('desc')}."))
                else:
                    answer.set_result(message.get("return"))
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(MachineError("QEMU has ended."))


class Agent:
    """The agent in the guest, over its serial line; one question at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self, sock: socket.socket) -> None:
        """Take the line; whether anyone is at the other end shows at the first question."""
        self._reader, self._writer = await asyncio.open_connection(sock=sock, limit=_LONGEST_LINE)

    async def ask(self, command: str, *, timeout_s: float, **arguments: Any) -> Any:
        """Ask the agent and return its answer.

        Args:
            command: `guest-ping` and so on.
            timeout_s: How long it may take.
            arguments: What goes with it; underscores represent dashes.

        Raises:
            AgentRefusedError: It says no.
            MachineError: It does not answer in time.
        """
        given = {name.replace("_", "-"): value for name, value in arguments.items()}
        async with self._lock:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._synchronize()
                    answer = await self._exchange({"execute": command, "arguments": given})
            except (TimeoutError, OSError, asyncio.IncompleteReadError, JsonError) as err:
                raise MachineError(f"The guest agent does not answer {command}.") from err
        if "error" in answer:
            raise AgentRefusedError(f"{answer['error'].get('desc')}.")
        return answer.get("return")

    def tell(self, command: str, **arguments: Any) -> None:
        """Send a command that has no answer when it succeeds: a shutdown."""
        if self._writer is not None:
            self._writer.write(_FLUSH + orjson.dumps({"execute": command, "arguments": arguments}) + b"\n")

    def close(self) -> None:
        """Let go of the line."""
        if self._writer is not None:
            self._writer.close()

    async def _synchronize(self) -> None:
        """Read past whatever earlier questions, given up on, are still being answered."""
        token = secrets.randbelow(2**31)
        await self._send(_FLUSH, {"execute": "guest-sync-delimited", "arguments": {"id": token}})
        while True:
            line = (await self._line()).rpartition(_FLUSH)[2]
            with contextlib.suppress(JsonError):
                if parse_json(line).get("return") == token:
                    return

    async def _exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await self._send(b"", request)
        answer: dict[str, Any] = parse_json(await self._line())
        return answer

    async def _send(self, prefix: bytes, request: Mapping[str, Any]) -> None:
        if self._writer is None:
            raise ConnectionError("no line to the agent")
        self._writer.write(prefix + orjson.dumps(request) + b"\n")
        await self._writer.drain()

    async def _line(self) -> bytes:
        if self._reader is None:
            raise ConnectionError("no line to the agent")
        line = await self._reader.readline()
        if not line:
            raise ConnectionError("the line to the agent is cut")
        return line
