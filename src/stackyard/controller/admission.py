"""Who may have what: plain tokens of the site, signed tokens, and a limit for those who guess.

A token is looked at before any limit: one that opens what is asked for is never refused or kept waiting
because others at the same address showed wrong ones.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from stackyard.base import serving
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.tokens import TokenError
from stackyard.sources.site.entities.postures import AuthMethod
from stackyard.state.http.credentials import Scheme, read_credentials
from stackyard.state.http.throttle import Throttle

if TYPE_CHECKING:
    from aiohttp import web

    from stackyard.controller.specs import SpecCollection, SpecRequest
    from stackyard.controller.tokens import Claims, Tokens

__all__ = ["Admission"]

_CHALLENGE = 'Bearer realm="stackyard"'
# git asks its user, or its credential helper, only for a challenge of this kind.
_GIT_CHALLENGE = 'Basic realm="stackyard"'


class Admission:
    """Decides who may have a spec or a repository.

    Args:
        tokens: The signed ones.
        repo_token: Opens every repository.
        throttle: Slows down who guesses.
    """

    def __init__(self, tokens: Tokens, *, repo_token: str, throttle: Throttle | None = None) -> None:
        self._tokens = tokens
        self._repo_token = repo_token
        self._throttle = throttle or Throttle()

    def use_repo_token(self, repo_token: str) -> None:
        """Take another token for the repositories from now on."""
        self._repo_token = repo_token

    def admit_to_spec(self, request: web.BaseRequest, book: SpecCollection, wanted: SpecRequest) -> None:
        """Let someone have a spec.

        Raises:
            RequestRefusedError: They may not.
        """
        if wanted.method is AuthMethod.NETWORK:
            return
        plain = book.auth.site_token
        if wanted.method is AuthMethod.NODE_TOKEN:
            plain = book.auth.node_tokens.get(wanted.identity)
        shown = _token(request)
        is_plain = _is_same(shown, plain)
        claims = None if is_plain else self._claims(shown)
        if is_plain or (claims is not None and claims.opens_spec(wanted.identity, wanted.spec)):
            serving.mark_known(request)
            return
        raise self._refusal(request, wanted.identity, _CHALLENGE, "The token does not open this spec.")

    def admit_to_repository(self, request: web.BaseRequest, name: str) -> None:
        """Let someone have a repository.

        Raises:
            RequestRefusedError: They may not, or there is none: who may not is not told which.
        """
        shown = _token(request)
        is_plain = _is_same(shown, self._repo_token)
        claims = None if is_plain else self._claims(shown)
        if is_plain or (claims is not None and claims.opens_repository(name)):
            serving.mark_known(request)
            return
        raise self._refusal(request, "", _GIT_CHALLENGE, "The token does not open this repository.")

    async def hold_back(self) -> None:
        """Keep the answer to someone who guesses back for a while, where few others are kept back."""
        await self._throttle.hold_back()

    def _claims(self, shown: str) -> Claims | None:
        try:
            return self._tokens.check(shown) if shown else None
        except TokenError:
            return None

    def _refusal(
        self, request: web.BaseRequest, name: str, challenge: str, detail: str
    ) -> RequestRefusedError:
        """Return the answer to a token that opens nothing here, counted where one was shown."""
        headers = {"WWW-Authenticate": challenge}
        if read_credentials(request).scheme is Scheme.NONE:
            return RequestRefusedError(401, Code.TOKEN_MISSING, "A token is needed.", headers=headers)
        wait_s = self._throttle.count_failure(request.remote or "", f"to {name}")
        if wait_s:
            # Each further guess costs a connection of its own.
            headers = {"Retry-After": str(max(1, round(wait_s))), "Connection": "close"}
            return RequestRefusedError(429, Code.TOO_MANY, "Too many wrong tokens.", headers=headers)
        if not _token(request):
            return RequestRefusedError(401, Code.TOKEN_MISSING, "A token is needed.", headers=headers)
        return RequestRefusedError(403, Code.TOKEN_WRONG, detail)


def _is_same(shown: str, known: str | None) -> bool:
    """Compare two tokens in a time that tells nothing of either; one that is not there is never the same."""
    given, wanted = (hashlib.sha256((text or "").encode(errors="surrogateescape")) for text in (shown, known))
    return hmac.compare_digest(given.digest(), wanted.digest()) and bool(known)


def _token(request: web.BaseRequest) -> str:
    """Return the token of a request: as a bearer, or as the password that git sends; empty for none."""
    shown = read_credentials(request)
    return shown.secret or shown.name
