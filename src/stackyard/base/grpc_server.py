"""A gRPC server that closes its connections when it ends, and refuses unknown methods as gRPC asks for it.

grpclib's own leaves connections to their clients. Its answer to an unknown method has no content type, which
newer clients, such as Terraform 1.13, take for a broken server instead of an older one.
"""

from __future__ import annotations

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
        self._protocols: weakref.WeakSet[H2Protocol] = weakref.WeakSet()

    def _protocol_factory(self) -> H2Protocol:
        protocol = self.make_protocol(super()._protocol_factory())
        self._protocols.add(protocol)
        return protocol

    def make_protocol(self, usual: H2Protocol) -> H2Protocol:
        """Return the protocol of a new connection."""
        return usual

    async def end(self) -> None:
        """Take no more calls, cancel those under way, and close every connection."""
        self.close()
        for protocol in self._protocols:
            # One whose handshake has not ended has no connection yet.
            if (connection := getattr(protocol, "connection", None)) is not None:
                connection.close()
        await self.wait_closed()
