"""A gRPC server that closes its connections when it ends, and refuses unknown methods as gRPC asks for it.

grpclib's own leaves connections to their clients. Its answer to an unknown method has no content type, which
newer clients, such as Terraform 1.13, take for a broken server instead of an older one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from typing import TYPE_CHECKING, Any

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grpclib.config import Configuration
    from grpclib.protocol import H2Protocol

__all__ = ["ClosingServer"]

# How long a client may take to close its side.
_PARTING_S = 0.2

# What is no call is refused; the user has nothing to do about it.
logging.getLogger("grpclib").addHandler(logging.NullHandler())


async def _refuse(stream: Any) -> None:
    raise GRPCError(Status.UNIMPLEMENTED, "Method not found")


_UNKNOWN = Handler(_refuse, Cardinality.UNARY_UNARY, None, None)


class _Methods(dict[str, Handler]):
    """The methods by their paths; every other path is refused."""

    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path, default or _UNKNOWN)


class ClosingServer(Server):
    """A server whose connections end with it.

    Args:
        services: What answers the calls.
        config: How it speaks HTTP/2.
    """

    def __init__(self, services: Sequence[Any], config: Configuration | None = None) -> None:
        super().__init__(services, config=config)
        self._mapping = _Methods(self._mapping)
        self._begun: weakref.WeakSet[H2Protocol] = weakref.WeakSet()
        self._open: dict[H2Protocol, asyncio.Transport] = {}
        self._closed = asyncio.Event()
        self._has_ended = False

    def _protocol_factory(self) -> H2Protocol:
        protocol = self.make_protocol(super()._protocol_factory())
        made, lost = protocol.connection_made, protocol.connection_lost
        self._begun.add(protocol)
        if self._has_ended:
            # It was accepted before the end. Its transport is made in this round of the loop.
            asyncio.get_running_loop().call_soon(self._abort_handshakes)

        def connection_made(transport: Any) -> None:
            # asyncio's TLS transport forgets how to abort when it is closed twice: the one below does not.
            below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
            made(transport)
            self._open[protocol] = carrier = below or transport
            if self._has_ended:
                # Its handshake was under way when the server ended.
                carrier.abort()

        def connection_lost(exc: BaseException | None) -> None:
            lost(exc)
            self._open.pop(protocol, None)
            self._closed.set()

        protocol.connection_made = connection_made  # type: ignore[method-assign]
        protocol.connection_lost = connection_lost  # type: ignore[method-assign]
        return protocol

    def make_protocol(self, usual: H2Protocol) -> H2Protocol:
        """Return the protocol of a new connection."""
        return usual

    async def end(self) -> None:
        """Take no more calls, cancel those under way, and close every connection."""
        self._has_ended = True
        for sock in getattr(self._server, "sockets", ()):
            asyncio.get_running_loop().remove_reader(sock.fileno())
        # What was accepted gets its transport in this round; a closed server would leave its socket open.
        await asyncio.sleep(0)
        self.close()
        for protocol in tuple(self._open):
            protocol.connection.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PARTING_S):
                    while self._open:
                        self._closed.clear()
                        await self._closed.wait()
        finally:
            # Also when the end is cancelled: TLS parts with a word of both sides, and this client says none.
            for transport in tuple(self._open.values()):
                transport.abort()
            self._abort_handshakes()
        # The loop closes aborted sockets in its next round.
        await asyncio.sleep(0)
        await self.wait_closed()

    def _abort_handshakes(self) -> None:
        """Abort the connections whose handshake is under way; asyncio has no public way to ask for them."""
        known = getattr(asyncio.get_running_loop(), "_transports", {})
        for transport in tuple(known.values()):
            if getattr(transport.get_protocol(), "_app_protocol", None) in self._begun:
                transport.abort()
