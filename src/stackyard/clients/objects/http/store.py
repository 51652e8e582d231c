"""A store at a state service: each method is one request, repeated while the service is away."""

from __future__ import annotations

import threading
import time
import urllib.parse
import uuid
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    Stored,
    StoreError,
    Tag,
    check_key,
    check_write_id,
)
from stackyard.clients.objects.http import errors
from stackyard.clients.objects.http.connections import ConnectionLostError, ConnectionPool, Reply, Request
from stackyard.clients.objects.http.token import StoreToken
from stackyard.clients.objects.http.watch import HttpWatch
from stackyard.clients.objects.wire import (
    MARK,
    PACKED,
    ROOT,
    WRITE_ID,
    ListPage,
    WireError,
    format_tag,
    pack_objects,
    parse_tag,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import StackyardError
    from stackyard.clients.objects.http.address import HttpAddress

__all__ = ["HttpObjects"]

_PAUSES = Backoff(first_s=0.05, longest_s=1.0)
# For so long a token that was refused is not shown again, unless its file holds another one.
_REFUSED_S = 5.0


class HttpObjects:
    """A store at a state service.

    Args:
        address: Where.
        token: Who we are; by default it is read from the environment.
        patience_s: How long a call waits for a service that is away or whose store is.
        answer_timeout_s: How long the service may be silent.

    Raises:
        StoreDeniedError: The service does not accept the token, or there is none.
        StoreError: The service cannot be reached, or is none.
        UsageError: The file with the authorities cannot be used.
    """

    def __init__(
        self,
        address: HttpAddress,
        *,
        token: StoreToken | None = None,
        patience_s: float = 30.0,
        answer_timeout_s: float = 30.0,
    ) -> None:
        self._address = address
        self._token = StoreToken() if token is None else token
        self._refused_until = 0.0
        self._patience_s = patience_s
        self._answer_timeout_s = answer_timeout_s
        self._pool = ConnectionPool(address)
        try:
            # A service that is away when a command starts is reported at once.
            self.ask({"prefix": "", "limit": "0"}, patience_s=0.0)
        except BaseException:
            self._pool.close()
            raise

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        reply = self._send(Request(method="GET", target=self._target(check_key(key))), key)
        if reply.status == 404:
            return None
        return Stored(data=reply.body, tag=self._tag(reply))

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object, and those that come before it."""
        return self.put_once(key, data, expect=expect, write_id=uuid.uuid4().hex, before=before)

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object; the service does it once, however often it is sent."""
        headers = {WRITE_ID: check_write_id(write_id), "Content-Type": "application/octet-stream"}
        others = {check_key(other): bytes(body) for other, body in (before or {}).items()}
        target, body = self._target(check_key(key)), bytes(data)
        if others:
            headers["Content-Type"], body = PACKED, pack_objects(body, others)
        if expect is ABSENT:
            headers["If-None-Match"] = "*"
        elif expect is not ANYTHING:
            headers["If-Match"] = format_tag(Tag(str(expect)))
        return self._tag(self._send(Request(method="PUT", target=target, body=body, headers=headers), key))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._send(Request(method="DELETE", target=self._target(check_key(key))), key)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects behind `after` that begin with a prefix, and that we may see."""
        found: list[ListedObject] = []
        while len(found) < limit:
            reply = self.ask({"prefix": prefix, "after": after, "limit": str(limit - len(found))})
            try:
                page = ListPage.from_json(reply.body)
            except WireError as err:
                raise errors.not_understood(self._address.label) from err
            found += page.objects
            after = page.after
            if not after:
                break
        return tuple(found[:limit])

    def watch(self, prefix: str) -> HttpWatch:
        """Watch the objects that begin with a prefix; each wait is a request that the service holds open."""
        return HttpWatch(self, prefix, label=self._address.label)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def ask(self, query: Mapping[str, str], *, held_s: float = 0.0, patience_s: float | None = None) -> Reply:
        """Send a request that is about no single object.

        Args:
            query: What is asked.
            held_s: How long the service holds the request open before it answers.
            patience_s: How long to wait for a service that is away; None is as for every other call.

        Raises:
            StoreError: No answer came.
        """
        target = f"{self._target('')}?{urllib.parse.urlencode(query)}"
        request = Request(method="GET", target=target)
        return self._send(request, "", held_s=held_s, patience_s=patience_s)

    # --- Requests

    def _target(self, key: str) -> str:
        return self._address.path + ROOT + key

    def _tag(self, reply: Reply) -> Tag:
        try:
            return parse_tag(reply.headers.get("ETag", ""))
        except WireError as err:
            raise errors.not_understood(self._address.label) from err

    def _send(
        self, request: Request, key: str, *, held_s: float = 0.0, patience_s: float | None = None
    ) -> Reply:
        """Send a request until it is answered, and return an answer that is no error.

        Every request may come twice: a write has an id, by which the service knows it.
        """
        patient_until = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        for pause_s in _PAUSES:
            try:
                reply = self._exchange(request, held_s)
            except ConnectionLostError as err:
                if err.is_old and time.monotonic() < patient_until:
                    # The service closed it between two requests; the others may be closed as well.
                    self._pool.drop_idle()
                    continue
                failure: StackyardError = StoreError(f"{self._address.label} cannot be reached: {err}.")
            else:
                found = self._judge(reply, request, key)
                if found is None:
                    return reply
                failure, pause_s = found, max(pause_s, errors.retry_after_s(reply))
            left_s = patient_until - time.monotonic()
            if left_s <= 0:
                raise failure
            threading.Event().wait(min(pause_s, left_s))
        raise AssertionError("pauses have no end")

    def _exchange(self, request: Request, held_s: float) -> Reply:
        if time.monotonic() < self._refused_until and not self._token.renew():
            # Each refusal counts against everyone at this address: a run that was cut off asks less often.
            raise errors.token_refused(self._address.label, self._token.remedy)
        timeout_s = self._answer_timeout_s + held_s
        reply = self._pool.exchange(self._signed(request), timeout_s=timeout_s)
        if reply.status == 401 and self._token.renew():
            reply = self._pool.exchange(self._signed(request), timeout_s=timeout_s)
        return reply

    def _signed(self, request: Request) -> Request:
        headers = {**request.headers, "Authorization": self._token.header}
        return Request(method=request.method, target=request.target, body=request.body, headers=headers)

    def _judge(self, reply: Reply, request: Request, key: str) -> StackyardError | None:
        """Return what may pass, None for an answer; raise what may not."""
        if reply.status in errors.MAY_PASS:
            failure = errors.make_error(reply, self._address.label, is_write=request.method != "GET")
            if errors.may_pass(failure):
                return failure
            raise failure
        if MARK in reply.headers:
            if reply.status == 200 or (reply.status == 404 and request.method == "GET" and key):
                return None
            if reply.status == 412:
                raise ConflictError(key)
        if reply.status == 401:
            self._refused_until = time.monotonic() + _REFUSED_S
            raise errors.token_refused(self._address.label, self._token.remedy)
        raise errors.make_error(reply, self._address.label, is_write=request.method != "GET")
