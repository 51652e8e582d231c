"""What a TrueNAS is asked for, over whichever protocol it has."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp

from stackyard.base.addresses import is_loopback
from stackyard.base.http_failures import describe_failure
from stackyard.base.sockets import ClientSockets
from stackyard.clients.truenas.dataset import Dataset
from stackyard.clients.truenas.failures import (
    TrueNasAnswerError,
    TrueNasCertificateError,
    TrueNasError,
    TrueNasUnreachableError,
)
from stackyard.clients.truenas.rest import RestTransport
from stackyard.clients.truenas.rpc import PATH, RpcTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.truenas.dataset import DatasetProperties
    from stackyard.clients.truenas.endpoint import TrueNasEndpoint

__all__ = ["TrueNasClient"]

_CONNECT_S = 15.0
_LARGEST_MESSAGE = 16 * 2**20
_NO_MIDDLEWARE = frozenset(
    (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
)


class _Transport(Protocol):
    """One of the protocols; each method raises `TrueNasError`."""

    async def login(self, api_key: str, user: str, /) -> None:
        """Log in."""

    async def query_datasets(self, name: str) -> Any:
        """Return the datasets of a name: one or none."""

    async def create_dataset(self, document: Mapping[str, Any]) -> None:
        """Create a dataset."""

    async def update_dataset(self, name: str, document: Mapping[str, Any]) -> None:
        """Change properties of a dataset."""


class TrueNasClient:
    """A client of one TrueNAS; use it in an `async with` block, which logs in.

    Args:
        endpoint: Where it is.
        timeout_s: How long one call may take.
    """

    def __init__(self, endpoint: TrueNasEndpoint, *, timeout_s: float = 60.0) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._open = contextlib.AsyncExitStack()
        self._transport: _Transport | None = None

    async def __aenter__(self) -> TrueNasClient:
        """Connect and log in.

        Raises:
            TrueNasUnreachableError: There is no connection.
            TrueNasCertificateError: The certificate cannot be verified; the key was not sent.
            TrueNasLoginError: The key is not accepted.
            TrueNasBusyError: There were too many logins.
            TrueNasAnswerError: It is no TrueNAS.
            UsageError: The address, the fingerprint or the authority cannot be read.
        """
        async with contextlib.AsyncExitStack() as stack:
            transport = await self._connect(stack)
            await transport.login(self._endpoint.api_key, self._endpoint.user)
            self._transport, self._open = transport, stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    async def find_dataset(self, name: str) -> Dataset | None:
        """Return a dataset, None where there is none of that name.

        Raises:
            TrueNasError: The call failed.
        """
        answer = await self._opened.query_datasets(name)
        if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
            raise TrueNasAnswerError(f"{self._endpoint.label} answers no list of datasets.")
        return next((found for one in answer if (found := Dataset.read(one)).name == name), None)

    async def create_dataset(self, name: str, properties: DatasetProperties) -> None:
        """Create a dataset for files; its parent has to be there.

        Raises:
            TrueNasRefusedError: TrueNAS refuses it, in its words.
            TrueNasError: The call failed; whether it was done is not known.
        """
        await self._opened.create_dataset({"name": name, "type": "FILESYSTEM", **properties.document()})

    async def update_dataset(self, name: str, properties: DatasetProperties) -> None:
        """Change properties of a dataset.

        Raises:
            TrueNasRefusedError: TrueNAS refuses it, in its words.
            TrueNasError: The call failed; whether it was done is not known.
        """
        await self._opened.update_dataset(name, properties.document())

    @property
    def _opened(self) -> _Transport:
        if self._transport is None:
            raise TrueNasError("The client is not open. This is a bug in stackyard.")
        return self._transport

    async def _connect(self, stack: contextlib.AsyncExitStack) -> _Transport:
        """Return JSON-RPC on a websocket, or REST where the release does not have it."""
        endpoint, label = self._endpoint, self._endpoint.label
        sockets = ClientSockets()
        stack.push_async_callback(sockets.close)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=endpoint.make_tls(), socket_factory=sockets.make),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._timeout_s),
                # The proxy of the environment is for other machines.
                trust_env=not is_loopback(endpoint.base.host or ""),
            )
        )
        try:
            socket = await stack.enter_async_context(
                session.ws_connect(endpoint.base.with_path(PATH), max_msg_size=_LARGEST_MESSAGE)
            )
        except aiohttp.WSServerHandshakeError as err:
            if err.status == HTTPStatus.NOT_FOUND:
                return RestTransport(session, endpoint.base, self._timeout_s)
            if err.status in _NO_MIDDLEWARE:
                raise TrueNasUnreachableError(
                    f"{label}: the middleware does not answer ({err.status})."
                ) from err
            raise TrueNasAnswerError(f"{label}{PATH} answers {err.status}, and no websocket.") from err
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch) as err:
            raise TrueNasCertificateError(f"{describe_failure(err)}.") from err
        except (aiohttp.ClientError, OSError) as err:
            raise TrueNasUnreachableError(f"{label}: {describe_failure(err)}.") from err
        return RpcTransport(socket, label, self._timeout_s)
