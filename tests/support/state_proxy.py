"""A proxy that loses requests, loses answers, or answers in another's place, exactly where a test says so."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["Fault", "Proxy", "proxied", "proxy_thread"]


class Fault(enum.Enum):
    """What happens to a request."""

    DROP_BEFORE = "the connection breaks before the request arrives"
    DROP_AFTER = "the request is done, and the connection breaks before the answer arrives"
    DROP_LATE = "the connection breaks, and the request arrives only when the test says so"
    FAIL = "500"
    AWAY = "503"


@dataclass
class Proxy:
    """What stands between a client and a server.

    Attributes:
        target: The port of the server.
        port: Its own port.
        faults: What happens to the coming requests of a method, the first first; nothing when used up.
        seen: Every request that came, as method and path.
        done: How many faults happened.
        on_fault: Called after the server did what a fault lets it do, before the client learns of the fault.
        late: The requests that are held back.
    """

    target: int
    port: int = 0
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    done: int = 0
    on_fault: Callable[[], object] = field(default=lambda: None)
    late: list[tuple[bytes, str]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fail(self, method: str, *faults: Fault) -> None:
        self.faults.setdefault(method, []).extend(faults)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    pass
        finally:
            self.tasks.discard(task)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:")]
        if len(lines) != head.count(b"\r\n") + 1:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(_header(lines, b"content-length") or 0))
        method, path, _ = lines[0].decode().split(" ", 2)
        self.seen.append((method, path))
        waiting = self.faults.get(method, [])
        fault = waiting.pop(0) if waiting else None
        self.done += fault is not None
        request = b"\r\n".join(lines) + body
        if fault is Fault.DROP_LATE:
            self.late.append((request, method))
        if fault in (Fault.DROP_BEFORE, Fault.DROP_LATE):
            await asyncio.to_thread(self.on_fault)
            return False
        if fault in (Fault.FAIL, Fault.AWAY):
            retry = b"Retry-After: 1\r\n" if fault is Fault.AWAY else b""
            status = fault.value.encode()
            writer.write(b"HTTP/1.1 " + status + b" No\r\n" + retry + b"Content-Length: 0\r\n\r\n")
            await writer.drain()
            return True
        answer = await self._forward(request, method)
        if fault is Fault.DROP_AFTER:
            await asyncio.to_thread(self.on_fault)
            return False
        writer.write(answer)
        await writer.drain()
        return True

    def deliver(self) -> list[bytes]:
        """Deliver what is held back, from another thread, and return what the server answers to it."""

        async def forward() -> list[bytes]:
            held, self.late = self.late, []
            return [await self._forward(*one) for one in held]

        return asyncio.run(forward())

    async def _forward(self, request: bytes, method: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            writer.write(request)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            if method == "HEAD" or lines[0].split(b" ")[1] in (b"204", b"304"):
                return head
            if b"chunked" in (_header(lines, b"transfer-encoding") or b""):
                return head + await reader.readuntil(b"0\r\n\r\n")
            return head + await reader.readexactly(int(_header(lines, b"content-length") or 0))
        finally:
            writer.transport.abort()


def _header(lines: list[bytes], name: bytes) -> bytes | None:
    for line in lines[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return None


@contextlib.asynccontextmanager
async def proxied(target: int) -> AsyncIterator[Proxy]:
    """Run a proxy in this event loop."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=2**24)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        ending = list(proxy.tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        # One more turn of the loop closes the sockets.
        await asyncio.sleep(0)


@contextlib.contextmanager
def proxy_thread(target: int) -> Iterator[Proxy]:
    """Run a proxy in a thread of its own, for clients that block."""
    ready, box = threading.Event(), list[tuple[Proxy, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def run() -> None:
        stop = asyncio.Event()
        async with proxied(target) as proxy:
            box.append((proxy, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    proxy, loop, stop = box[0]
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
