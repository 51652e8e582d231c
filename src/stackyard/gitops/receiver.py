"""The door for webhooks: proven, queued, answered; nothing else is done before the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events, serving
from stackyard.base.errors import StackyardError
from stackyard.clients.forge.failures import WebhookForgedError, WebhookRefusedError
from stackyard.clients.forge.webhooks import read_webhook
from stackyard.gitops.jobs import job_for
from stackyard.gitops.queue.protocol import Put

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from stackyard.clients.forge.model import ForgeKind, WebhookEvent
    from stackyard.gitops.queue.protocol import JobQueue

__all__ = ["HEALTH", "LARGEST_BYTES", "WEBHOOK", "WebhookReceiver"]

WEBHOOK = "/gitops/webhook"
HEALTH = "/gitops/health"
# A push of thousands of commits may be larger: what it tells is found by the next reconciliation.
LARGEST_BYTES = 4 * 2**20
_PIECE_BYTES = 2**16
# A forge gives a webhook up after ten seconds.
_PUT_WITHIN_S = 8.0
_GUARDED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _TooLargeError(Exception):
    """A body is larger than we take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver:
    """Answers the requests of one forge for one repository.

    Attributes:
        queue: Where what was received goes.
        kind: Which forge it is.
        repository: `owner/name`.
        secrets: What the forge and we know; several while one replaces another.
        emit: Told of what cannot be taken.
    """

    queue: JobQueue
    kind: ForgeKind
    repository: str
    secrets: Sequence[str] = field(repr=False)
    emit: events.Emit = events.ignore

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path = request.raw_path.partition("?")[0]
        allowed = {WEBHOOK: ("POST",), HEALTH: ("GET", "HEAD")}.get(path)
        if allowed is None:
            return _answer(404, "There is nothing here.")
        if request.method not in allowed:
            return _answer(405, "That is not done here.", {"Allow": ", ".join(allowed)})
        if path == HEALTH:
            return _answer(200, "ok")
        try:
            return await self._receive(request)
        except _TooLargeError:
            response = _answer(413, f"A delivery has at most {LARGEST_BYTES} bytes.")
            response.force_close()
            return response

    async def _receive(self, request: web.BaseRequest) -> web.Response:
        body = await _read_body(request)
        try:
            event = self._prove(request.headers, body)
        except WebhookForgedError as err:
            self._tell(request, err.detail)
            # Who cannot prove who they are learns nothing.
            return _answer(401, "The delivery is not proven to be from the forge.")
        except WebhookRefusedError as err:
            self._tell(request, err.detail)
            return _answer(400, err.detail)
        if event.repository.casefold() != self.repository.casefold():
            return _answer(404, "That repository is not looked after here.")
        return await self._queue(event)

    def _prove(self, headers: Mapping[str, str], body: bytes) -> WebhookEvent:
        """Return what a delivery tells, proven with one of the secrets."""
        *earlier, last = self.secrets
        for secret in earlier:
            try:
                return read_webhook(self.kind, headers, body, secret)
            except WebhookForgedError:
                continue
        return read_webhook(self.kind, headers, body, last)

    async def _queue(self, event: WebhookEvent) -> web.Response:
        job = job_for(event)
        if job is None:
            return _answer(200, "ignored")
        try:
            async with asyncio.timeout(_PUT_WITHIN_S):
                put = await self.queue.put(job, delivery=event.delivery)
        except (StackyardError, TimeoutError) as err:
            text = err.detail if isinstance(err, StackyardError) else "the store does not answer"
            self._log(events.LogLevel.ERROR, f"A webhook could not be queued: {text}")
            # The forge may send it again; else the next reconciliation finds what it tells.
            return _answer(503, "The delivery could not be stored.", {"Retry-After": "30"})
        return _answer(200 if put is Put.REPEATED else 202, put.value)

    def _tell(self, request: web.BaseRequest, detail: str) -> None:
        self._log(events.LogLevel.WARNING, f"{request.remote} sent a delivery that is refused: {detail}")

    def _log(self, level: events.LogLevel, text: str) -> None:
        self.emit(events.LogLine(level=level, source="gitops", text=text))


async def _read_body(request: web.BaseRequest) -> bytes:
    """Return the body; a larger one is not read to its end."""
    if (request.content_length or 0) > LARGEST_BYTES:
        raise _TooLargeError
    body = bytearray()
    async for piece in request.content.iter_chunked(_PIECE_BYTES):
        body += piece
        if len(body) > LARGEST_BYTES:
            raise _TooLargeError
    return bytes(body)


def _answer(status: int, said: str, headers: Mapping[str, str] | None = None) -> web.Response:
    name = "status" if status < 400 else "error"
    return serving.respond(status, orjson.dumps({name: said}), headers={**_GUARDED, **(headers or {})})
