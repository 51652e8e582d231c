"""JSON-RPC 2.0 over a websocket, which TrueNAS 25.04 and later have."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.visible import on_one_line
from stackyard.clients.truenas.failures import (
    TrueNasAnswerError,
    TrueNasBusyError,
    TrueNasError,
    TrueNasLoginError,
    TrueNasRefusedError,
    TrueNasUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PATH", "RpcTransport"]

PATH = "/api/current"
_LONGEST = 500
_BUSY = "EBUSY"
_NO_METHOD = -32601
_FORBIDDEN = frozenset(("ENOTAUTHENTICATED", "EACCES", "EPERM"))


class RpcTransport:
    """Calls methods on a connection.

    Args:
        socket: The connection.
        label: The host, for errors.
        timeout_s: How long one call may take.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, label: str, timeout_s: float) -> None:
        self._socket = socket
        self._label = label
        self._timeout_s = timeout_s
        self._number = 0

    async def login(self, api_key: str, user: str) -> None:
        """Log in.

        Raises:
            TrueNasLoginError: The key is not accepted, or the name of its user is needed.
            TrueNasError: The call failed.
        """
        if user:
            request = {"mechanism": "API_KEY_PLAIN", "username": user, "api_key": api_key}
            answer = await self._call("auth.login_ex", request)
            found = answer.get("response_type") if isinstance(answer, dict) else None
            if found != "SUCCESS":
                said = on_one_line(str(found))[:_LONGEST]
                raise TrueNasLoginError(f"{self._label} does not accept the key of {user}: {said}.")
            return
        try:
            is_good = await self._call("auth.login_with_api_key", api_key)
        except TrueNasRefusedError as err:
            if not err.is_unknown:
                raise
            raise TrueNasLoginError(
                f"{self._label} wants the name of the user that the key is of.",
                remedy="Add it to bootstrap.yaml, below `storage`: `user: NAME`.",
            ) from err
        if is_good is not True:
            raise TrueNasLoginError(f"{self._label} does not accept the key.")

    async def query_datasets(self, name: str) -> Any:
        """Return the datasets of a name: one or none."""
        options = {"extra": {"retrieve_children": False}}
        return await self._call("pool.dataset.query", [["id", "=", name]], options)

    async def create_dataset(self, document: Mapping[str, Any]) -> None:
        """Create a dataset."""
        await self._call("pool.dataset.create", document)

    async def update_dataset(self, name: str, document: Mapping[str, Any]) -> None:
        """Change properties of a dataset."""
        await self._call("pool.dataset.update", name, document)

    async def _call(self, method: str, *params: Any) -> Any:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._socket.send_str(orjson.dumps(request).decode())
                answer = await self._receive(method, self._number)
        except TimeoutError as err:
            raise TrueNasUnreachableError(
                f"{self._label} did not answer {method} in {self._timeout_s:g} seconds."
            ) from err
        except (aiohttp.ClientError, OSError) as err:
            raise TrueNasUnreachableError(f"{self._label} broke the connection in {method}.") from err
        if "error" in answer:
            raise _read_error(self._label, method, answer["error"])
        return answer.get("result")

    async def _receive(self, method: str, number: int) -> Mapping[str, Any]:
        """Return the answer to a request; events that come before it are of no interest here."""
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise TrueNasUnreachableError(
                    f"{self._label} broke the connection before its answer to {method}."
                )
            try:
                answer = parse_json(message.data.encode())
            except JsonError as err:
                raise TrueNasAnswerError(f"{self._label} does not answer {method} with JSON.") from err
            if isinstance(answer, dict) and answer.get("id") == number:
                return answer


def _read_error(label: str, method: str, error: Any) -> TrueNasError:
    """Return the error that an answer tells of."""
    data = error.get("data") if isinstance(error, dict) else None
    data = data if isinstance(data, dict) else {}
    reason = data.get("reason") or (error.get("message") if isinstance(error, dict) else None)
    said = on_one_line(str(reason or error).strip())[:_LONGEST]
    text = f"{label}, {method}: {said}"
    name = data.get("errname")
    if isinstance(error, dict) and error.get("code") == _NO_METHOD:
        return TrueNasRefusedError(text, is_unknown=True)
    if name == _BUSY:
        return TrueNasBusyError(text)
    return TrueNasLoginError(text) if name in _FORBIDDEN else TrueNasRefusedError(text)
