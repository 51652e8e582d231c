"""Issuing, checking, revoking and rotating tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.controller.tokens.claims import (
    ANY,
    Claims,
    TokenError,
    TokenRefusal,
    read_unverified_claims,
    spell,
    verify,
)
from stackyard.controller.tokens.store import IssuedToken, SigningKey, StoredTokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.controller.tokens.store import TokenStore

__all__ = ["Tokens"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_DAY_S = 86_400.0
_LONGEST_S = 366 * _DAY_S
# A client or server whose clock is a little behind is not refused.
_CLOCKS_DIFFER_S = 60.0
# Compared with where no key is known, so that it takes as long.
_NO_KEY = b"\0" * 32


class Tokens:
    """The tokens of a controller.

    Args:
        store: Keeps the keys and the list.
        site_key: The `auth.signing_key` of the site in hexadecimal digits; if there is one, only it counts.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(
        self, store: TokenStore, *, site_key: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._site_key = site_key
        self._clock = clock

    def use_site_key(self, site_key: str | None) -> None:
        """Sign with another key of the site from now on; tokens of the old one end at once."""
        self._site_key = site_key

    def issue(
        self,
        *,
        node: str = "",
        spec: str = "",
        repo: str = "",
        lasts_s: float = _DAY_S,
        note: str = "",
    ) -> tuple[str, IssuedToken]:
        """Make a token, and return it with what is kept of it.

        Raises:
            TokenError: It would open nothing, or last for ever.
        """
        if not (node or spec or repo):
            raise TokenError("A token opens a node's spec, a spec or a repository, and none was named.")
        for name in filter(None, (node, spec, repo.removeprefix(ANY))):
            if not _NAME.fullmatch(name):
                raise TokenError(f"{name[:80]!r} is no name.")
        if not 0 < lasts_s <= _LONGEST_S:
            raise TokenError("A token lasts for more than nothing and at most a year.")
        now = self._clock()
        wanted = IssuedToken(
            id=secrets.token_hex(8),
            node=node,
            spec=spec,
            repo=repo,
            note=note,
            issued_at=now,
            expires_at=now + lasts_s,
        )

        def add(before: StoredTokens) -> StoredTokens:
            # A clock that was set back must not make a token that counts for one from before a lost list.
            issued = replace(wanted, issued_at=max(now, before.not_before))
            return self._tidy(_with_key(before, now)).with_issued(issued)

        kept = self._store.change(add)
        issued = next(one for one in kept.issued if one.id == wanted.id)
        key = self._signing_key(kept)
        claims = Claims(
            id=issued.id,
            key=key.id,
            node=node,
            spec=spec,
            repo=repo,
            issued_at=issued.issued_at,
            expires_at=issued.expires_at,
        )
        return spell(claims, bytes.fromhex(key.secret)), issued

    def check(self, token: str) -> Claims:
        """Return what a token opens.

        Raises:
            TokenError: It does not count.
        """
        claims, now = read_unverified_claims(token), self._clock()
        kept = self._store.read()
        key = next((one for one in self._keys(kept) if one.id == claims.key), None)
        is_signed = verify(token, _NO_KEY if key is None else bytes.fromhex(key.secret))
        if key is None or (key.retires_at is not None and key.retires_at <= now):
            raise _make_refused_error(TokenRefusal.UNKNOWN_KEY)
        if not is_signed:
            raise _make_refused_error(TokenRefusal.FORGED)
        if claims.expires_at <= now:
            raise _make_refused_error(TokenRefusal.EXPIRED)
        if claims.issued_at > now + _CLOCKS_DIFFER_S:
            raise _make_refused_error(TokenRefusal.NOT_YET)
        is_revoked = any(one.id == claims.id and one.revoked_at is not None for one in kept.issued)
        if is_revoked or claims.issued_at < kept.not_before:
            raise _make_refused_error(TokenRefusal.REVOKED)
        return claims

    def all(self) -> tuple[IssuedToken, ...]:
        """Return every token that has not expired, revoked ones too, the oldest first."""
        now = self._clock()
        return tuple(one for one in self._store.read().issued if one.expires_at > now)

    def revoke(self, token_id: str) -> IssuedToken:
        """End a token now, at every controller that shares the store.

        Raises:
            TokenError: None of this number was issued here.
        """
        now, found = self._clock(), []

        def revoke(kept: StoredTokens) -> StoredTokens:
            known = next((one for one in kept.issued if one.id == token_id), None)
            if known is None:
                raise TokenError(f"There is no token {token_id[:40]!r}; `serve token list` shows all.")
            found.append(replace(known, revoked_at=known.revoked_at or now))
            return kept.with_issued(found[-1])

        self._store.change(revoke)
        return found[-1]

    def rotate(self, *, overlap_s: float) -> SigningKey:
        """Sign with a new key from now on; tokens of the old keys count for the overlap and no longer.

        Raises:
            UsageError: The site has a key of its own, which is changed there.
        """
        if self._site_key is not None:
            raise UsageError(
                "The site has a key of its own: `auth.signing_key` in its secrets.",
                remedy="Change it with `stackyard secrets edit`; tokens that it signed end at once.",
            )
        now = self._clock()
        new = _make_key(now)

        def rotate(kept: StoredTokens) -> StoredTokens:
            until = now + overlap_s
            old = tuple(
                replace(key, retires_at=until if key.retires_at is None else min(until, key.retires_at))
                for key in self._tidy(kept).keys
            )
            return replace(self._tidy(kept), keys=(*old, new))

        self._store.change(rotate)
        return new

    def _keys(self, kept: StoredTokens) -> tuple[SigningKey, ...]:
        return kept.keys if self._site_key is None else (_site_key(self._site_key),)

    def _signing_key(self, kept: StoredTokens) -> SigningKey:
        return self._keys(kept)[-1]

    def _tidy(self, kept: StoredTokens) -> StoredTokens:
        """Return what still matters: expired tokens are refused without being known."""
        now = self._clock()
        return replace(
            kept,
            keys=tuple(key for key in kept.keys if key.retires_at is None or key.retires_at > now),
            issued=tuple(one for one in kept.issued if one.expires_at > now),
        )


def _with_key(kept: StoredTokens, now: float) -> StoredTokens:
    has_key = any(key.retires_at is None for key in kept.keys)
    return kept if has_key else replace(kept, keys=(*kept.keys, _make_key(now)))


def _make_key(now: float) -> SigningKey:
    secret = secrets.token_hex(32)
    return SigningKey(id=_key_id(secret), secret=secret, created_at=now)


def _site_key(secret: str) -> SigningKey:
    return SigningKey(id=_key_id(secret.lower()), secret=secret, created_at=0.0)


def _key_id(secret: str) -> str:
    return hashlib.sha256(b"stackyard key " + bytes.fromhex(secret)).hexdigest()[:12]


def _make_refused_error(refusal: TokenRefusal) -> TokenError:
    return TokenError(f"The token is {refusal}.", refusal=refusal)
