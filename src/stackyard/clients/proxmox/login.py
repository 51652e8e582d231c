"""Who we are, as headers: a token as it is, a ticket fetched once, shared, and renewed before it expires."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox.connection import Credentials, Login, Ticket, Token
from stackyard.clients.proxmox.encoding import encode
from stackyard.clients.proxmox.failures import Call, LoginRefusedError, Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Identity"]

# Proxmox forgets a ticket after two hours; one that lives is taken in place of the password.
_RENEW_AFTER_S = 3600.0
_CALL = Call("POST", "/access/ticket")


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldTicket:
    ticket: Ticket
    since: float


class Identity:
    """Gives the headers that say who we are.

    Args:
        credentials: What was given.
        post: Sends the login form and returns the answer's data.
    """

    def __init__(self, credentials: Credentials, post: Callable[[Call, str], Awaitable[Any]]) -> None:
        self._credentials = credentials
        self._post = post
        self._held: _HeldTicket | None = None
        self._lock = asyncio.Lock()

    @property
    def can_renew(self) -> bool:
        """Whether a refused ticket can be replaced by logging in again."""
        return isinstance(self._credentials, Login)

    async def headers(self, method: str) -> dict[str, str]:
        """Return the headers for a call.

        Raises:
            LoginRefusedError: The password is wrong.
        """
        if isinstance(self._credentials, Token):
            return {"Authorization": f"PVEAPIToken={self._credentials.text}"}
        ticket = self._credentials if isinstance(self._credentials, Ticket) else await self._ticket()
        headers = {"Cookie": f"PVEAuthCookie={ticket.ticket}"}
        if method != "GET":
            headers["CSRFPreventionToken"] = ticket.csrf_token
        return headers

    async def forget(self, refused: dict[str, str]) -> None:
        """Drop a ticket that was refused, unless another call has renewed it meanwhile."""
        async with self._lock:
            if self._held and f"PVEAuthCookie={self._held.ticket.ticket}" == refused.get("Cookie"):
                self._held = None

    async def _ticket(self) -> Ticket:
        async with self._lock:
            if self._held is None:
                self._held = await self._log_in(None)
            elif time.monotonic() - self._held.since > _RENEW_AFTER_S:
                self._held = await self._log_in(self._held.ticket.ticket)
            return self._held.ticket

    async def _log_in(self, old: str | None) -> _HeldTicket:
        login = self._credentials
        if not isinstance(login, Login):
            raise TypeError("only a user with a password logs in")
        form = {"username": login.username, "password": old or login.password}
        if login.otp and old is None:
            form["otp"] = login.otp
        data = await self._post(_CALL, encode(form))
        fields = data if isinstance(data, dict) else {}
        if fields.get("NeedTFA"):
            raise LoginRefusedError(_CALL, Refusal(status=401, reason="a second factor is needed"))
        try:
            ticket = Ticket(ticket=str(fields["ticket"]), csrf_token=str(fields["CSRFPreventionToken"]))
        except KeyError as err:
            raise LoginRefusedError(_CALL, Refusal(status=401, reason="the answer has no ticket")) from err
        return _HeldTicket(ticket=ticket, since=time.monotonic())
