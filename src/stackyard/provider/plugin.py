"""The server that an engine talks to: the provider's service, and those of every plugin, over HTTP/2."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

from grpclib.config import Configuration
from grpclib.const import Cardinality, Handler
from grpclib.protocol import H2Protocol
from h2.settings import SettingCodes

from stackyard.base.grpc_server import ClosingServer
from stackyard.provider.messages import PACKAGE, pb
from stackyard.provider.sessions import CONNECTION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from stackyard.provider.servicer import Servicer

__all__ = ["listen"]

# How much an engine may send before we have read it; a message can be larger.
_WINDOW_BYTES = 16 * 1024 * 1024
# The usual limit is a hundred calls at once, and the call to stop would wait behind them.
_MOST_CALLS = 2**31 - 1
_METHODS = tuple(name for name in vars(pb) if hasattr(getattr(pb, name), "Request"))


class _Calls:
    """The calls of an engine, by the path of each, and how many are under way."""

    def __init__(self, servicer: Servicer) -> None:
        self._servicer = servicer
        self._under_way: set[asyncio.Task[Any] | None] = set()

    def __mapping__(self) -> dict[str, Handler]:
        calls = {
            f"/{PACKAGE}.Provider/{name}": self._unary(
                getattr(self._servicer, name), getattr(pb, name).Request, getattr(pb, name).Response
            )
            for name in _METHODS
        }
        # We end with stackyard, not with the engine; and we have no output that it should show.
        calls["/plugin.GRPCController/Shutdown"] = self._unary(_answer_nothing, pb.Empty, pb.Empty)
        calls["/plugin.GRPCStdio/StreamStdio"] = Handler(
            _stream_nothing, Cardinality.UNARY_STREAM, pb.Empty, pb.Empty
        )
        return calls

    def _unary(self, answer: Callable[[Any], Awaitable[Any]], request: Any, response: Any) -> Handler:
        async def call(stream: Any) -> None:
            task = asyncio.current_task()
            self._under_way.add(task)
            CONNECTION.set(stream._stream.connection)
            try:
                await stream.send_message(await answer(await stream.recv_message()))
            finally:
                self._under_way.discard(task)

        return Handler(call, Cardinality.UNARY_UNARY, request, response)

    async def wait(self, timeout_s: float) -> None:
        """Wait for the calls that are under way."""
        waiting = [task for task in self._under_way if task is not None]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout_s)


class _PluginServer(ClosingServer):
    """A server that takes any number of calls at once."""

    def make_protocol(self, usual: H2Protocol) -> H2Protocol:
        return _PluginProtocol(usual.handler, usual.config, usual.h2_config)


class _GatheredWrites:
    """A connection that sends what is written in one go: an answer is written in three parts."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str) -> Any:
        return self._transport.get_extra_info(name)


class _PluginProtocol(H2Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(
            cast("asyncio.Transport", _GatheredWrites(cast("asyncio.Transport", transport)))
        )
        self.connection._connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: _MOST_CALLS})
        self.connection.flush()


async def _answer_nothing(request: Any) -> Any:
    return pb.Empty()


async def _stream_nothing(stream: Any) -> None:
    await stream.recv_message()


@contextlib.asynccontextmanager
async def listen(servicer: Servicer, path: str, *, grace_s: float) -> AsyncIterator[None]:
    """Answer an engine on a Unix socket in the block; calls under way get some time at its end."""
    calls = _Calls(servicer)
    config = Configuration(http2_connection_window_size=_WINDOW_BYTES, http2_stream_window_size=_WINDOW_BYTES)
    server = _PluginServer([calls], config)
    await server.start(path=path)
    try:
        yield
    finally:
        await calls.wait(grace_s)
        await server.end()
