"""The lab as a client of a Kubernetes API, as the controllers of a cluster are."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import orjson

from pvelab.kubernetes.problems import KubeStatusError
from stackyard.base.backoff import Backoff
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.sockets import ClientSockets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pvelab.kubernetes.running import RunningKubernetes

__all__ = ["ControllerClient"]

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_WATCH_S = 60
# An API server tells no one when it is back.
_AGAIN = Backoff(first_s=0.05, longest_s=1.0)
_LARGEST_LINE = 16 * 2**20


class ControllerClient:
    """Reads, watches and writes objects by their paths; use it in an `async with` block.

    Args:
        kube: The API.
        manager: The name under which it sets fields.
    """

    def __init__(self, kube: RunningKubernetes, manager: str) -> None:
        self._kube = kube
        self._manager = manager
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        authority = self._kube.authority
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        pair = authority.issue_client(self._manager, ("system:masters",))
        # Python loads a key from a file only; this one is ours alone and gone at the end of the block.
        with tempfile.NamedTemporaryFile(prefix="pvelab-tls-") as stream:
            stream.write(pair.key_pem + pair.certificate_pem)
            stream.flush()
            context.load_cert_chain(stream.name)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, socket_factory=self._sockets.make)
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, kind: str = "application/json"
    ) -> dict[str, Any]:
        """Send a request and return the object of its answer.

        Raises:
            KubeStatusError: The API refuses it.
        """
        if self._session is None:
            raise RuntimeError("the client is not open")
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(
            method, f"{self._kube.url}{path}", data=data, headers={"Content-Type": kind}
        ) as response:
            data = await response.read()
            # A group that is not served is answered with plain text.
            is_json = response.content_type == "application/json"
            document: dict[str, Any] = parse_json(data or b"{}") if is_json else {"message": data.decode()}
            if response.status >= 400:
                message = str(document.get("message", ""))
                raise KubeStatusError(response.status, str(document.get("reason", "")), message)
            return document

    async def find(self, path: str) -> dict[str, Any] | None:
        """Return an object, None if there is none."""
        try:
            return await self.send("GET", path)
        except KubeStatusError as problem:
            if problem.code == 404:
                return None
            raise

    async def list_items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a collection; none for a kind that is not served."""
        return list((await self.find(path) or {}).get("items") or ())

    async def apply(self, path: str, obj: Mapping[str, Any], *, force: bool = True) -> dict[str, Any]:
        """Apply an object on the server's side."""
        query = f"?fieldManager={self._manager}&force={str(force).lower()}"
        return await self.send("PATCH", path + query, obj, kind=_APPLY)

    async def set_status(self, path: str, status: Mapping[str, Any]) -> None:
        """Set fields of the status of an object; one that is gone has none."""
        query = f"/status?fieldManager={self._manager}"
        try:
            await self.send("PATCH", path + query, {"status": status}, kind=_MERGE)
        except KubeStatusError as problem:
            if problem.code != 404:
                raise

    async def watch(self, path: str) -> AsyncIterator[None]:
        """Yield at the beginning, and whenever an object of a collection may have changed, without end."""
        for pause_s in _AGAIN:
            version = ""
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, KubeStatusError):
                found = await self.send("GET", f"{path}?limit=1")
                version = str((found.get("metadata") or {}).get("resourceVersion", ""))
            yield
            if version:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, KubeStatusError):
                    async for _ in self._read_changes(path, version):
                        yield
            else:
                await asyncio.sleep(pause_s)

    async def _read_changes(self, path: str, version: str) -> AsyncIterator[bytes]:
        if self._session is None:
            raise RuntimeError("the client is not open")
        url = f"{self._kube.url}{path}?watch=true&resourceVersion={version}&timeoutSeconds={_WATCH_S}"
        timeout = aiohttp.ClientTimeout(total=None, sock_read=2 * _WATCH_S)
        async with self._session.get(url, timeout=timeout) as response:
            try:
                if response.status >= 400:
                    return
                async for chunk in response.content.iter_any():
                    # Which object it was does not matter: whoever watches reads all of them again.
                    if b"\n" in chunk:
                        yield chunk
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()
