"""REST, which TrueNAS before 26 has; before 25.04 there is no JSON-RPC."""

from __future__ import annotations

import urllib.parse
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from yarl import URL

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.http_failures import describe_failure
from stackyard.base.visible import on_one_line
from stackyard.clients.truenas.failures import (
    TrueNasAnswerError,
    TrueNasError,
    TrueNasLoginError,
    TrueNasRefusedError,
    TrueNasUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RestTransport"]

_DATASETS = "/api/v2.0/pool/dataset"
_LONGEST = 500
_LARGEST_ANSWER = 16 * 2**20


class RestTransport:
    """Calls paths with a key.

    Args:
        session: The connections.
        base: The address.
        timeout_s: How long one call may take.
    """

    def __init__(self, session: aiohttp.ClientSession, base: URL, timeout_s: float) -> None:
        self._session = session
        self._base = base
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._headers: dict[str, str] = {}

    async def login(self, api_key: str, _user: str) -> None:
        """Keep the key, which goes with each request and says whose it is, and try it.

        Raises:
            TrueNasLoginError: The key is not accepted.
            TrueNasError: The call failed.
        """
        self._headers = {"Authorization": f"Bearer {api_key}"}
        await self._call("GET", "/api/v2.0/system/version")

    async def query_datasets(self, name: str) -> Any:
        """Return the datasets of a name: one or none."""
        query = urllib.parse.urlencode({"id": name, "extra.retrieve_children": "false"})
        return await self._call("GET", f"{_DATASETS}?{query}")

    async def create_dataset(self, document: Mapping[str, Any]) -> None:
        """Create a dataset."""
        await self._call("POST", _DATASETS, document)

    async def update_dataset(self, name: str, document: Mapping[str, Any]) -> None:
        """Change properties of a dataset."""
        await self._call("PUT", f"{_DATASETS}/id/{urllib.parse.quote(name, safe='')}", document)

    async def _call(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        # The name of a dataset has slashes, which have to stay encoded.
        url = URL(f"{self._base}{path}", encoded=True)
        label, shown = self._base.authority, path.partition("?")[0]
        body = None if document is None else orjson.dumps(document)
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                status, data = response.status, await _read_body(response)
        except (aiohttp.ClientError, OSError) as err:
            raise TrueNasUnreachableError(
                f"{label} broke the connection in {method} {shown}: {describe_failure(err)}."
            ) from err
        if status == HTTPStatus.OK:
            return _parse(label, shown, data)
        raise _read_error(f"{label}, {method} {shown}", status, data)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return an answer whole, however many packets it came in."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError(f"the answer is larger than {_LARGEST_ANSWER} bytes")
        parts.append(part)
    return b"".join(parts)


def _parse(label: str, path: str, data: bytes) -> Any:
    try:
        return parse_json(data)
    except JsonError as err:
        raise TrueNasAnswerError(f"{label} does not answer {path} with JSON.") from err


def _read_error(what: str, status: int, data: bytes) -> TrueNasError:
    """Return the error that an answer tells of."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return TrueNasLoginError(f"{what}: the key is not accepted ({status}).")
    if status in (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT):
        return TrueNasUnreachableError(f"{what}: the middleware does not answer ({status}).")
    if status != HTTPStatus.UNPROCESSABLE_ENTITY:
        return TrueNasAnswerError(f"{what}: the answer is {status}.")
    try:
        said = _read_reasons(parse_json(data))
    except JsonError:
        said = ""
    return TrueNasRefusedError(f"{what}: {on_one_line(said)[:_LONGEST] or status}")


def _read_reasons(document: Any) -> str:
    """Return why a call is refused: a message, or a list of them for each field."""
    if not isinstance(document, dict):
        return ""
    if isinstance(document.get("message"), str):
        return str(document["message"])
    found = []
    for where, reasons in document.items():
        for one in reasons if isinstance(reasons, list) else []:
            if isinstance(one, dict):
                found.append(f"{where}: {one.get('message')}")
    return "; ".join(found)
