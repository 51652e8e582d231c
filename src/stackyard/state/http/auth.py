"""Who asks: Basic or Bearer credentials, or a client certificate."""

from __future__ import annotations

import base64
import binascii
import time
from typing import TYPE_CHECKING

from stackyard import serving
from stackyard.errors import StackyardError
from stackyard.state.http.throttle import Throttle
from stackyard.state.principals import (
    Principal,
    Principals,
    find_by_certificate,
    find_by_password,
    find_by_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

__all__ = ["Authenticator", "LoginRefusedError", "LoginThrottledError"]

# How long a change of the principals may take to be noticed.
_FRESH_S = 2.0


class LoginRefusedError(StackyardError):
    """A client of the state service showed no credentials, or wrong ones."""

    code = "E-STATE-LOGIN"
    summary = "The credentials are missing or wrong"
    default_remedy = "Set TF_HTTP_USERNAME and TF_HTTP_PASSWORD to a name and token that the service knows."


class LoginThrottledError(StackyardError):
    """A client of the state service failed to log in too often, or asks too often."""

    code = "E-STATE-THROTTLED"
    summary = "Too many requests"
    default_remedy = "Wait a minute, and correct the credentials of the client that fails."

    def __init__(self, detail: str, *, wait_s: float) -> None:
        super().__init__(detail)
        self.wait_s = wait_s


class Authenticator:
    """Tells who asks.

    Args:
        principals: Those of the store.
        own: One more that is known to this process only, such as that of a single run.
        throttle: Slows down who guesses.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(
        self,
        principals: Principals,
        *,
        own: Principal | None = None,
        throttle: Throttle | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._principals = principals
        self._own = own
        self._throttle = throttle or Throttle()
        self._clock = clock
        self._known: tuple[Principal, ...] = ()
        self._known_at = -_FRESH_S

    def forget(self) -> None:
        """Ask the store for the principals at the next request."""
        self._known_at = -_FRESH_S

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` should be called before the next login."""
        return time.monotonic() - self._known_at >= _FRESH_S

    def refresh(self) -> None:
        """Read the principals of the store; blocks.

        Raises:
            StoreError: The store cannot be used.
        """
        self._known = self._principals.all()
        self._known_at = time.monotonic()

    def own_answers(self, request: web.BaseRequest) -> Principal | None:
        """Return the principal of this process if the credentials are its own: that needs no store."""
        own = () if self._own is None else (self._own,)
        return self._find(own, *_credentials(request)) if own else None

    def login(self, request: web.BaseRequest) -> Principal:
        """Return who asks.

        Raises:
            LoginRefusedError: Nobody that is known.
            LoginThrottledError: Somebody who failed too often, or asks too often.
        """
        address = request.remote or ""
        name, secret = _credentials(request)
        wait_s = self._throttle.blocked_s(address, name)
        if wait_s:
            raise LoginThrottledError("Too many failed logins.", wait_s=wait_s)
        known = self._known if self._own is None else (self._own, *self._known)
        found = self._find(known, name, secret) or self._by_certificate(request, known)
        if found is None:
            if secret:
                self._throttle.failed(address, name)
            raise LoginRefusedError("No credentials." if not secret else f"Wrong credentials for {name!r}.")
        wait_s = self._throttle.request_wait_s(found.name)
        if wait_s:
            raise LoginThrottledError(f"{found.name} asks too often.", wait_s=wait_s)
        return found

    def _find(self, known: tuple[Principal, ...], name: str, secret: str) -> Principal | None:
        if not secret:
            return None
        now = self._clock()
        return find_by_password(known, name, secret, now) if name else find_by_token(known, secret, now)

    def _by_certificate(self, request: web.BaseRequest, known: tuple[Principal, ...]) -> Principal | None:
        shown = serving.peer_certificate(request)
        if shown is None:
            return None
        return find_by_certificate(known, shown.common_name, shown.fingerprint, self._clock())


def _credentials(request: web.BaseRequest) -> tuple[str, str]:
    """Return the name, empty for a bearer, and the secret, empty where there is none that makes sense."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    value = value.strip()
    if kind.lower() == "bearer":
        return "", value
    if kind.lower() != "basic":
        return "", ""
    try:
        name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return name, secret
