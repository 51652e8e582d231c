"""Who asks: Basic or Bearer credentials, or a client certificate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stackyard.base import serving
from stackyard.base.errors import StackyardError
from stackyard.state.http.credentials import Credentials, Scheme, read_credentials
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
# Of a name that no one has; it may be long.
_SHOWN_NAME = 64


class LoginRefusedError(StackyardError):
    """A client of the state service showed no credentials, or wrong ones."""

    code = "E-STATE-LOGIN"
    summary = "The credentials are missing or wrong"
    default_remedy = "Set TF_HTTP_USERNAME and TF_HTTP_PASSWORD to a name and token that the service knows."

    def __init__(self, detail: str, *, scheme: Scheme) -> None:
        super().__init__(detail)
        self.scheme = scheme


class LoginThrottledError(StackyardError):
    """A client of the state service failed to log in too often, or asks too often."""

    code = "E-STATE-THROTTLED"
    summary = "Too many requests"
    default_remedy = "Wait a minute, and correct the credentials of the client that fails."

    def __init__(self, detail: str, *, wait_s: float, scheme: Scheme = Scheme.NONE) -> None:
        super().__init__(detail)
        self.wait_s = wait_s
        self.scheme = scheme

    @property
    def is_guess(self) -> bool:
        """Whether its credentials are wrong, in contrast to right ones that are used too often."""
        return self.scheme is not Scheme.NONE


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
        return self._find(own, read_credentials(request)) if own else None

    def login(self, request: web.BaseRequest) -> Principal:
        """Return who asks; the credentials are looked at before any limit.

        Raises:
            LoginRefusedError: No one that is known.
            LoginThrottledError: Wrong credentials once too often, or right ones that are used too often.
        """
        shown = read_credentials(request)
        known = self._known if self._own is None else (self._own, *self._known)
        found = self._find(known, shown) or self._by_certificate(request, known)
        if found is None:
            raise self._refusal(request, shown)
        wait_s = self._throttle.request_wait_s(found.name)
        if wait_s:
            raise LoginThrottledError(f"{found.name} asks too often.", wait_s=wait_s)
        return found

    async def hold_back(self) -> None:
        """Keep the answer to someone who guesses back for a while, where few others are kept back."""
        await self._throttle.hold_back()

    def _refusal(
        self, request: web.BaseRequest, shown: Credentials
    ) -> LoginRefusedError | LoginThrottledError:
        """Return the answer to what is not known, counted where it was an attempt."""
        certificate, scheme, name = serving.peer_certificate(request), shown.scheme, shown.name
        if scheme is Scheme.NONE and certificate is None:
            return LoginRefusedError("No credentials.", scheme=scheme)
        if scheme is Scheme.NONE and certificate is not None:
            scheme, name = Scheme.CERTIFICATE, certificate.common_name
        wait_s = self._throttle.count_failure(request.remote or "", name)
        detail = f"Wrong credentials for {name[:_SHOWN_NAME]!r} ({scheme})."
        if wait_s:
            return LoginThrottledError(f"{detail} Too many.", wait_s=wait_s, scheme=scheme)
        return LoginRefusedError(detail, scheme=scheme)

    def _find(self, known: tuple[Principal, ...], shown: Credentials) -> Principal | None:
        if not shown.secret:
            return None
        now, secret = self._clock(), shown.secret
        if not shown.name:
            return find_by_token(known, secret, now)
        return find_by_password(known, shown.name, secret, now)

    def _by_certificate(self, request: web.BaseRequest, known: tuple[Principal, ...]) -> Principal | None:
        shown = serving.peer_certificate(request)
        now = self._clock()
        # It was valid when the connection was made, which may be long ago.
        if shown is None or shown.not_after <= now:
            return None
        return find_by_certificate(known, shown.common_name, shown.fingerprint, now)
