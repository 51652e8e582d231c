"""Whose request it is: ticket and CSRF token, or API token."""

from __future__ import annotations

import hmac
import re
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.access.directory import split_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.access.directory import Directory
    from pvelab.world.access.tickets import Tickets
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Store

__all__ = ["NOBODY", "Identity", "Login"]

_COOKIE = re.compile(r"(?:^|[\s;])PVEAuthCookie=([^;]*)")
_TOKEN = re.compile(r"(?:^|[\s;])PVEAPIToken[= ]([^;]*)")
_UPLOAD = re.compile(r"/nodes/[^/]+/storage/[^/]+/upload")
_PUBLIC = frozenset(
    (
        ("GET", "/access/domains"),
        ("GET", "/access/ticket"),
        ("POST", "/access/ticket"),
        ("POST", "/access/vncticket"),
        ("POST", "/access/openid/login"),
        ("POST", "/access/openid/auth-url"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The caller of a request; `authid` is `user@realm` or `user@realm!token`, None for no one."""

    authid: str | None
    is_token: bool = False


NOBODY = Identity(authid=None)


class Login:
    """Authenticates requests as pveproxy does."""

    def __init__(self, store: Store, clock: LabClock, directory: Directory, tickets: Tickets) -> None:
        self._store = store
        self._clock = clock
        self._directory = directory
        self._tickets = tickets

    def identify(self, method: str, path: str, headers: Mapping[str, str]) -> Identity:
        """Return who makes a request.

        Raises:
            PveError: 401 without a body: no ticket, a bad one, a bad token, a bad CSRF token.
        """
        if (method, path) in _PUBLIC:
            return NOBODY
        authorization = headers.get("Authorization", "")
        ticket = _value(_COOKIE, headers.get("Cookie", "")) or _value(_COOKIE, authorization)
        token = None if ticket else _value(_TOKEN, authorization)
        if token:
            return Identity(authid=self._token(token), is_token=True)
        if not ticket:
            raise _refusal("No ticket")
        userid = self._ticket(ticket)
        # Uploads come from plain HTML forms, which cannot send the header.
        exempt = method == "GET" or (method == "POST" and _UPLOAD.fullmatch(path))
        if not exempt and not self._tickets.csrf_fits(userid, headers.get("CSRFPreventionToken", "")):
            raise _refusal("Permission denied - invalid csrf token")
        return Identity(authid=userid)

    def _ticket(self, ticket: str) -> str:
        userid = self._tickets.user_of(ticket)
        if userid is None:
            raise _refusal("Authentication failed!")
        self._require_enabled(userid)
        return userid

    def _token(self, text: str) -> str:
        authid, _, secret = text.rpartition("=")
        userid, name = split_token(authid)
        token = self._directory.find_token(authid) if name else None
        kept = self._store.get("token_secrets", authid)
        if token is None or kept is None or not hmac.compare_digest(kept["value"].encode(), secret.encode()):
            raise _refusal("Authentication failed!")
        if token.get("expire") and token["expire"] < self._clock.now():
            raise _refusal("Authentication failed!")
        self._require_enabled(userid)
        return authid

    def _require_enabled(self, userid: str) -> None:
        try:
            self._directory.require_enabled_user(userid)
        except PveError as err:
            raise _refusal("Authentication failed!") from err


def _value(pattern: re.Pattern[str], header: str) -> str | None:
    found = pattern.search(header)
    return urllib.parse.unquote(found[1]).strip() if found else None


def _refusal(text: str) -> PveError:
    return PveError(text, status=401, bare=True)
