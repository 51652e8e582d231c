"""Calls to the Talos API of one node."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from typing import TYPE_CHECKING, Any, Self

from grpclib.client import StreamUnaryMethod, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.clients.talos.connection import close_channel, open_channel
from stackyard.clients.talos.failures import (
    TalosCertificateError,
    TalosClockError,
    TalosError,
    TalosRefusedError,
    TalosUnreachableError,
)
from stackyard.talosapi.messages import pb
from stackyard.talosapi.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterator
    from types import TracebackType

    from stackyard.base.redaction import Redactor
    from stackyard.clients.talos.connection import PinnedChannel, TalosEndpoint

__all__ = ["TalosClient"]

_TIMEOUT_S = 15.0
_MACHINE, _STORAGE = "/machine.MachineService/", "/storage.StorageService/"
# What OpenSSL says of a certificate whose time has not come, or has passed.
_NOT_VALID_NOW = (9, 10)
_STATE = "/cosi.resource.State/"


class TalosClient:
    """One node, or the nodes behind it.

    Args:
        endpoint: Where it answers, and who we are.
        timeout_s: How long one call may take.
    """

    def __init__(self, endpoint: TalosEndpoint, *, timeout_s: float = _TIMEOUT_S) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._channel: PinnedChannel | None = None

    async def __aenter__(self) -> Self:
        self._channel = open_channel(self.endpoint)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await close_channel(self._channel)
            self._channel = None

    async def call(
        self,
        path: str,
        request: Any = None,
        *,
        node: str | None = None,
        redactor: Redactor = NOTHING_SECRET,
        timeout_s: float | None = None,
    ) -> Any:
        """Return the answer to a call.

        Args:
            path: The method: `/machine.MachineService/Version`.
            request: The message; an empty one when absent.
            node: The node that the endpoint passes the call on to; the endpoint itself when absent.
            redactor: Hides the secrets of the message, which a refusal may quote.
            timeout_s: How long this call may take; as long as any other when absent.

        Raises:
            TalosRefusedError: The node refuses it.
            TalosCertificateError: The two sides do not trust each other.
            TalosUnreachableError: Nothing answers.
        """
        method = METHODS[path]
        call: UnaryUnaryMethod[Any, Any] = UnaryUnaryMethod(
            self._open_channel(), path, method.request, method.response
        )
        message = method.request() if request is None else request
        with self._explain(method.name, redactor):
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                return await call(message, metadata=_metadata(node))

    async def stream(self, path: str, request: Any = None, *, node: str | None = None) -> AsyncIterator[Any]:
        """Yield the answers of a call that has many; each may take as long as one call.

        Raises:
            TalosError: As for `call`.
        """
        method = METHODS[path]
        call: UnaryStreamMethod[Any, Any] = UnaryStreamMethod(
            self._open_channel(), path, method.request, method.response
        )
        message = method.request() if request is None else request
        with self._explain(method.name):
            async with call.open(metadata=_metadata(node)) as opened:
                async with asyncio.timeout(self._timeout_s):
                    await opened.send_message(message, end=True)
                while True:
                    async with asyncio.timeout(self._timeout_s):
                        answer = await opened.recv_message()
                    if answer is None:
                        return
                    yield answer

    async def upload(self, path: str, parts: AsyncIterable[bytes]) -> Any:
        """Send bytes in many messages, and return the answer; each may take as long as one call.

        Raises:
            TalosError: As for `call`.
        """
        method = METHODS[path]
        call: StreamUnaryMethod[Any, Any] = StreamUnaryMethod(
            self._open_channel(), path, method.request, method.response
        )
        with self._explain(method.name):
            async with call.open() as opened:
                async for part in parts:
                    async with asyncio.timeout(self._timeout_s):
                        await opened.send_message(method.request(bytes=part))
                async with asyncio.timeout(self._timeout_s):
                    await opened.end()
                async with asyncio.timeout(self._timeout_s):
                    return await opened.recv_message()

    async def read_resource(self, kind: str, namespace: str, name: str, *, node: str | None = None) -> Any:
        """Return what a resource of a node says, as its YAML has it.

        Args:
            kind: The full name of its type: `MachineStatuses.runtime.talos.dev`.
            namespace: `runtime`, `network`, `config`.
            name: Its name: `machine`.
            node: The node that the endpoint passes the call on to; the endpoint itself when absent.

        Raises:
            TalosRefusedError: It is not there (`NOT_FOUND`), or may not be read.
            TalosError: As for `call`.
        """
        request = pb.GetRequest(namespace=namespace, type=kind, id=name)
        answer = await self.call(f"{_STATE}Get", request, node=node)
        return parse_yaml(answer.resource.spec.yaml_spec)

    async def list_resources(self, kind: str, namespace: str, *, node: str | None = None) -> dict[str, Any]:
        """Return what the resources of a type say, by their names.

        Raises:
            TalosError: As for `call`.
        """
        request = pb.ListRequest(namespace=namespace, type=kind)
        return {
            answer.resource.metadata.id: parse_yaml(answer.resource.spec.yaml_spec)
            async for answer in self.stream(f"{_STATE}List", request, node=node)
        }

    async def read_version(self, *, node: str | None = None) -> str:
        """Return the version of Talos that a node runs, without `v`.

        Raises:
            TalosRefusedError: The node is in maintenance mode.
            TalosError: As for `call`.
        """
        answer = await self.call(f"{_MACHINE}Version", node=node)
        tag: str = answer.messages[0].version.tag
        return tag.removeprefix("v")

    async def list_disks(self, *, node: str | None = None) -> tuple[Any, ...]:
        """Return the disks of a node.

        Raises:
            TalosError: As for `call`.
        """
        answer = await self.call(f"{_STORAGE}Disks", node=node)
        return tuple(disk for message in answer.messages for disk in message.disks)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of a node in maintenance mode; None before the first call, and of other nodes."""
        return self._open_channel().pinned

    def _open_channel(self) -> PinnedChannel:
        if self._channel is None:
            raise RuntimeError("the client is not open")
        return self._channel

    @contextlib.contextmanager
    def _explain(self, method: str, redactor: Redactor = NOTHING_SECRET) -> Iterator[None]:
        """Turn what the library raises into our errors."""
        shown = str(self.endpoint)
        try:
            yield
        except TalosError:
            raise
        except GRPCError as err:
            said = redactor(err.message or "no answer")
            if err.status is Status.UNAVAILABLE:
                raise TalosUnreachableError(f"{shown}: {said}.") from None
            raise TalosRefusedError(f"{shown} refuses {method}: {said}.", err.status.name) from None
        except TimeoutError as err:
            raise TalosUnreachableError(f"{shown} did not answer {method} in time.") from err
        except ssl.SSLError as err:
            reason = err.reason or str(err)
            if isinstance(err, ssl.SSLCertVerificationError):
                reason = err.verify_message or reason
            raise _kind_of(err)(f"{shown}: {reason}.") from err
        except StreamTerminatedError as err:
            # TLS 1.3: the client learns with the first call that the other side wants a certificate. A node
            # that was heard before has accepted ours: it reboots, or the network is gone.
            if self._channel is not None and self._channel.is_heard:
                raise TalosUnreachableError(f"{shown} ended the connection: {err}.") from err
            if self.endpoint.credentials is not None:
                # Its own certificate was verified: it is of our cluster, whatever it has against ours.
                raise TalosClockError(
                    f"{shown} is of this cluster and does not accept our certificate, which has expired or "
                    "is not valid yet by the clock of the node."
                ) from err
            raise TalosCertificateError(f"{shown} ended the connection: {err}.") from err
        except (OSError, ProtocolError) as err:
            problem = os.strerror(err.errno) if isinstance(err, OSError) and err.errno else err
            raise TalosUnreachableError(f"{shown}: {problem}.") from err


def _kind_of(err: ssl.SSLError) -> type[TalosError]:
    """Return what an error of TLS is about: a clock, trust, or a service that does not speak TLS."""
    reason = err.reason or str(err)
    verify_code = getattr(err, "verify_code", None)
    if verify_code in _NOT_VALID_NOW or "CERTIFICATE_EXPIRED" in reason:
        return TalosClockError
    is_about_trust = "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
    return TalosCertificateError if is_about_trust else TalosUnreachableError


def _metadata(node: str | None) -> dict[str, str]:
    return {} if node is None else {"node": node}
