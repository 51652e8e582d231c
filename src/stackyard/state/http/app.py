"""One handler for everything that clients of the state service ask."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from stackyard.base import serving
from stackyard.base.errors import StackyardError
from stackyard.clients.objects import StoreBusyError, StoreError, wire
from stackyard.state.http.answers import RightMissingError, answer_error
from stackyard.state.http.auth import LoginRefusedError, LoginThrottledError
from stackyard.state.http.bodies import SentBody, md5_of, read_body, takes_gzip
from stackyard.state.http.change_feeds import ChangeFeeds
from stackyard.state.http.credentials import Scheme
from stackyard.state.http.health import StoreHealth
from stackyard.state.http.layouts import LocksOfConnection, is_engine, read_address
from stackyard.state.http.lock_waits import LockRequest, LockWaits
from stackyard.state.http.metrics import Metrics
from stackyard.state.http.objects import ObjectRequests
from stackyard.state.http.refused_logins import RefusedLogins
from stackyard.state.http.workers import Workers
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.model import Actor, Version
from stackyard.state.principals import Right
from stackyard.state.refusals import NotHolderError, StateLockedError, StateRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from stackyard.state.contents import Content
    from stackyard.state.http.auth import Authenticator
    from stackyard.state.principals import Principal
    from stackyard.state.run_lock import RunLock
    from stackyard.state.service import StateService

__all__ = ["StateApp"]

T = TypeVar("T")

_WRITES = ("POST", "LOCK", "UNLOCK")
_STORED = 200
# More threads would only wait for the same disk; with S3 each waits for the network.
_THREADS = 32
# How many large bodies are worked on at once: each takes several times its size in memory.
_LARGE_AT_ONCE = 4
_LARGE_BYTES = 1024 * 1024
_LOCK_BYTES = 64 * 1024
_SMALL_BYTES = 1024


@dataclass(slots=True)
class _RequestFacts:
    """What is known of a request that is being answered.

    Attributes:
        method: What it does, in the words of the protocol.
        lock: The lock that it is about, once that was read.
    """

    method: str
    lock: LockInfo | None = None


class StateApp:
    """Answers requests.

    Args:
        service: The states.
        auth: Tells who asks.
        max_body_bytes: The largest state that is taken.
        hold_s: How long the request of a client that waits for a lock is held open; 0 never.
        lease: The lease of the run that this process is, put on every lock that it grants.
        on_wait: Told when a client has to wait for a lock.
        is_own: Whether only engines of this run ask, at the addresses that it gave them.

    Attributes:
        run_lock: The lock that the run holds on its state, under which its own engines work.
    """

    def __init__(
        self,
        service: StateService,
        auth: Authenticator,
        *,
        max_body_bytes: int = 64 * 1024 * 1024,
        hold_s: float = 10.0,
        lease: str | None = None,
        on_wait: Callable[[str, StateLockedError], None] | None = None,
        is_own: bool = False,
    ) -> None:
        self.service = service
        self.metrics = Metrics()
        self.run_lock: RunLock | None = None
        self._store_health = StoreHealth(service.objects)
        self._auth = auth
        self._max_body_bytes = max_body_bytes
        self._lease = lease
        self._is_own = is_own
        self._workers = Workers(_THREADS)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._feeds = ChangeFeeds(service.objects)
        self._waits = LockWaits(
            service.locks, self._feeds, self.call, self.metrics, hold_s=hold_s, on_wait=on_wait
        )
        self._objects = ObjectRequests(
            service.objects, self._feeds, self.call, max_body_bytes=max_body_bytes, large=self._large
        )
        self._refused = RefusedLogins(service.audit, self.call)
        self._running: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        """Write down what is still to be written, and let go of the threads."""
        self._feeds.close()
        self._refused.close(self._workers.submit)
        self._workers.close()

    async def call(self, function: Callable[[], T]) -> T:
        """Do what blocks in a thread."""
        return await self._workers.call(function)

    async def handle(self, request: web.BaseRequest, *, path: str | None = None) -> web.StreamResponse:
        """Answer one request.

        Args:
            request: What was asked.
            path: Its path and query as they were sent, where the service is below another server's path.
        """
        began, raw = time.monotonic(), path or request.raw_path
        asked = _RequestFacts(request.method)
        try:
            response = await self._answer(request, raw, asked)
        except StackyardError as err:
            self._count(err, asked.method)
            if asked.method in _WRITES and isinstance(err, StoreError):
                size = request.content_length or 0 if asked.method == "POST" else 0
                self._store_health.note_failure(err, size)
            response = answer_error(err, asked.method, asked.lock)
        else:
            if asked.method in _WRITES and response.status == _STORED:
                self._store_health.note_success()
        if self._has_objects(raw):
            response.headers[wire.MARK] = "1"
        self.metrics.count_request(asked.method, response.status, time.monotonic() - began)
        return response

    def _has_objects(self, path: str) -> bool:
        """Return whether a path is one of objects; engines of a run get states alone."""
        return path.startswith(wire.ROOT) and not self._is_own

    async def _answer(self, request: web.BaseRequest, raw: str, asked: _RequestFacts) -> web.Response:
        path = raw.partition("?")[0]
        if path == "/health" and request.method == "GET":
            return await self._health()
        if path == "/metrics" and request.method == "GET":
            text = self.metrics.text().encode()
            return serving.respond(200, text, content_type="text/plain; version=0.0.4; charset=utf-8")
        principal = await self._login(request)
        if self._has_objects(path):
            asked.method = f"objects-{request.method}"
            return await self._objects.answer(request, raw, principal)
        address = read_address(path, request.method, is_literal=self._is_own)
        asked.method = address.method or request.method
        answers = {"GET": self._get, "POST": self._post, "LOCK": self._lock, "UNLOCK": self._unlock}
        answer = answers.get(address.method)
        if answer is None:
            return serving.respond(405, headers={"Allow": ", ".join(address.allowed)})
        return await answer(request, address.name, principal, asked)

    # --- The methods

    async def _get(
        self, request: web.BaseRequest, name: str, principal: Principal, asked: _RequestFacts
    ) -> web.Response:
        del asked
        _require(principal, Right.READ, name)
        LocksOfConnection(request, principal.name).check_read(name)
        own = self._own(name, principal)
        if own is not None and own.staged is not None:
            return serving.respond(200, own.staged, headers={"Content-MD5": md5_of(own.staged)})
        content, md5 = await self._call(self._read, name)
        if content is None:
            return serving.respond(404)
        body = content.body
        headers = {"Content-MD5": md5, "X-State-Version": str(content.version.number)}
        if len(body.data) > _SMALL_BYTES and takes_gzip(request):
            return serving.respond(200, body.gzipped, headers={**headers, "Content-Encoding": "gzip"})
        return serving.respond(200, body.data, headers=headers)

    def _read(self, name: str) -> tuple[Content | None, str]:
        content = self.service.contents.read(name)
        return content, "" if content is None else md5_of(content.body.data)

    async def _post(
        self, request: web.BaseRequest, name: str, principal: Principal, asked: _RequestFacts
    ) -> web.Response:
        del asked
        _require(principal, Right.WRITE, name)
        lock_id, own = request.query.get("ID", ""), self._own(name, principal)
        if own is not None:
            lock_id = own.under(lock_id)
        is_large = request.content_length is None or request.content_length > _LARGE_BYTES
        async with self._large if is_large else contextlib.nullcontext():
            sent = await read_body(request, self._max_body_bytes)
            version = await self._call(self._write, name, sent, _actor(request, principal), lock_id)
        self.metrics.count("writes_stored")
        return serving.respond(200, orjson.dumps({"version": version.number, "serial": version.serial}))

    def _write(self, name: str, sent: SentBody, actor: Actor, lock_id: str) -> Version:
        data, md5 = sent.decode(self._max_body_bytes)
        return self.service.contents.write(name, data, actor, lock_id=lock_id, md5=md5)

    async def _lock(
        self, request: web.BaseRequest, name: str, principal: Principal, asked: _RequestFacts
    ) -> web.Response:
        _require(principal, Right.LOCK, name)
        data, _ = (await read_body(request, _LOCK_BYTES)).decode(_LOCK_BYTES)
        info = parse_lock_info(data)
        asked.lock = info
        own = self._own(name, principal)
        if own is not None:
            own.lend_to(info.id)
            return serving.respond(200, info.body())
        actor = _actor(request, principal)
        asked_lock = LockRequest(
            name=name, info=info, actor=actor, lease=self._lease, is_gone=functools.partial(_is_gone, request)
        )
        held, has_waited = await self._waits.lock(asked_lock)
        if has_waited and _is_gone(request):
            await self._call(self.service.locks.withdraw, name, info.id, actor)
            self._waits.wake(name)
            raise StateLockedError("The client is gone.", holder=held)
        self.metrics.count("locks_granted")
        LocksOfConnection(request, principal.name).add(name, info.id)
        return serving.respond(200, b"" if is_engine(request) else held.info.body())

    async def _unlock(
        self, request: web.BaseRequest, name: str, principal: Principal, asked: _RequestFacts
    ) -> web.Response:
        _require(principal, Right.LOCK, name)
        data, _ = (await read_body(request, _LOCK_BYTES)).decode(_LOCK_BYTES)
        actor, locks = _actor(request, principal), self.service.locks
        own = self._own(name, principal)
        if own is not None and data and own.take_back(parse_lock_info(data).id):
            return serving.respond(200)
        if not data:
            _require(principal, Right.BREAK, name)
            self._require_empty_unlock(name)
            await self._call(locks.break_lock, name, None, actor, reason="force-unlock without an ID")
        else:
            info = parse_lock_info(data)
            asked.lock = info
            if info.is_bare:
                _require(principal, Right.BREAK, name)
                await self._call(locks.break_lock, name, info.id, actor, reason="force-unlock")
            else:
                await self._call(locks.unlock, name, info.id, actor)
            LocksOfConnection(request, principal.name).remove(info.id)
        self._waits.wake(name)
        return serving.respond(200)

    def _own(self, name: str, principal: Principal) -> RunLock | None:
        """Return the lock that this run holds on a state, where one of its own engines asks."""
        own = self.run_lock
        return own if own is not None and own.admits(name, principal.name) else None

    def _require_empty_unlock(self, name: str) -> None:
        if not self.service.policy.empty_unlock:
            raise NotHolderError(
                f"An UNLOCK of {name} without an ID, as Terraform's force-unlock sends, is not allowed here.",
                remedy="Use `stackyard state unlock`, or start the service without --refuse-empty-unlock.",
            )

    async def check_store(self) -> None:
        """Find out whether the store can be read and takes writes.

        Raises:
            StoreError: It does not.
            StoreBusyError: Other processes keep it busy.
        """
        await self._once("health", self._store_health.check)

    async def _health(self) -> web.Response:
        try:
            await self.check_store()
        except (StoreError, StoreBusyError) as err:
            # Everyone may ask: where the store is is not told.
            body = {"status": "failed", "code": err.code, "reason": err.summary}
            return serving.respond(503, orjson.dumps(body), reason=err.summary, headers={"Retry-After": "1"})
        return serving.respond(200, b'{"status":"ok"}')

    # --- Who asks, and what went wrong

    async def _login(self, request: web.BaseRequest) -> Principal:
        if self._auth.is_stale and self._auth.own_answers(request) is None:
            await self._once("principals", self._auth.refresh)
        try:
            principal = self._auth.login(request)
            serving.mark_known(request)
            return principal
        except (LoginRefusedError, LoginThrottledError) as err:
            if err.scheme is not Scheme.NONE:
                await self._refused.note(request.remote or "", err.scheme, err.detail)
            if isinstance(err, LoginThrottledError) and err.is_guess:
                await self._auth.hold_back()
            raise

    async def _once(self, what: str, function: Callable[[], None]) -> None:
        """Do something once for all who ask meanwhile: who has not logged in must not take all threads."""
        running = self._running.get(what)
        if running is None or running.done():
            running = self._running[what] = asyncio.create_task(self._call(function))
            running.add_done_callback(_retrieve)
        await asyncio.shield(running)

    async def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await self.call(functools.partial(function, *args, **kwargs))

    def _count(self, err: StackyardError, method: str) -> None:
        if isinstance(err, LoginRefusedError | LoginThrottledError):
            self.metrics.count("logins_refused")
        elif isinstance(err, StoreError | StoreBusyError):
            self.metrics.count("store_failures")
        elif isinstance(err, StateRefusedError | StateLockedError):
            self.metrics.count("writes_refused" if method == "POST" else "lock_conflicts")


def _require(principal: Principal, right: Right, name: str) -> None:
    if not principal.may(right, name):
        raise RightMissingError(f"{principal.name} may not {right.value} {name}.")


def _actor(request: web.BaseRequest, principal: Principal) -> Actor:
    return Actor(principal=principal.name, address=request.remote or "")


def _retrieve(task: asyncio.Task[None]) -> None:
    """Take note of how it ended, also where all who waited for it are gone."""
    if not task.cancelled():
        task.exception()


def _is_gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()
