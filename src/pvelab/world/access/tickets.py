"""Tickets, CSRF tokens and passwords: made, signed, verified."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import urllib.parse
from typing import TYPE_CHECKING

from pvelab.world.access.sha256_crypt import is_hashed, verify_password

if TYPE_CHECKING:
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Store

__all__ = ["TICKET_LIFETIME_S", "Tickets", "hash_password", "password_fits"]

TICKET_LIFETIME_S = 2 * 3600
# Proxmox accepts tickets of a node whose clock runs a little ahead.
_GRACE_S = 300
# Enough for passwords that guard nothing, and quick enough for two hundred clients logging in at once.
_ROUNDS = 1000


def hash_password(password: str) -> str:
    """Return what is kept of a password."""
    salt = secrets.token_hex(8)
    return f"{salt}${_digest(password, salt)}"


def password_fits(password: str, kept: str) -> bool:
    """Return whether a password is the one that was hashed, by us or as Linux keeps it."""
    if is_hashed(kept):
        return verify_password(password, kept)
    salt, _, digest = kept.partition("$")
    return hmac.compare_digest(_digest(password, salt), digest)


class Tickets:
    """Signs with a secret of the lab's own and checks the age by the lab's clock."""

    def __init__(self, store: Store, clock: LabClock) -> None:
        self._store = store
        self._clock = clock

    def issue(self, userid: str) -> str:
        """Return a ticket: `PVE:user@realm:TIME::signature`."""
        plain = f"PVE:{userid}:{int(self._clock.now()):08X}"
        return f"{plain}::{self._sign(plain)}"

    def user_of(self, ticket: str) -> str | None:
        """Return whose a ticket is, or None if it is forged, damaged or too old."""
        plain, mark, signature = ticket.partition("::")
        if not mark or not _same(self._sign(plain), signature):
            return None
        kind, _, rest = plain.partition(":")
        userid, _, stamp = rest.rpartition(":")
        return userid if kind == "PVE" and self._is_fresh(stamp) else None

    def issue_challenge(self, userid: str, challenge: str) -> str:
        """Return a ticket that lets a user answer a challenge, and do nothing else."""
        plain = f"PVE:!tfa!{urllib.parse.quote(challenge, safe='')}:{int(self._clock.now()):08X}"
        return f"{plain}::{self._sign(f'{plain}:{userid}')}"

    def challenge_of(self, ticket: str, userid: str) -> str | None:
        """Return the challenge in a ticket of a user, or None if it is not such a ticket or too old."""
        plain, _, signature = ticket.partition("::")
        kind, _, rest = plain.partition(":")
        challenge, _, stamp = rest.rpartition(":")
        if not _same(self._sign(f"{plain}:{userid}"), signature) or not self._is_fresh(stamp):
            return None
        if kind != "PVE" or not challenge.startswith("!tfa!"):
            return None
        return urllib.parse.unquote(challenge.removeprefix("!tfa!"))

    def csrf_token(self, userid: str) -> str:
        """Return the token that a ticket's holder sends with every change."""
        stamp = f"{int(self._clock.now()):08X}"
        return f"{stamp}:{self._sign(f'{stamp}:{userid}')}"

    def csrf_fits(self, userid: str, token: str) -> bool:
        """Return whether a CSRF token belongs to a user and is not too old."""
        stamp, _, signature = token.partition(":")
        return _same(self._sign(f"{stamp}:{userid}"), signature) and self._is_fresh(stamp)

    def renew_key(self) -> None:
        """Sign with another secret from now on, in the running transaction: all tickets so far are void."""
        self._store.put("secrets", "authkey", {"hex": secrets.token_hex(32)})

    def _is_fresh(self, stamp: str) -> bool:
        try:
            age_s = self._clock.now() - int(stamp, 16)
        except ValueError:
            return False
        return -_GRACE_S < age_s < TICKET_LIFETIME_S

    def _sign(self, text: str) -> str:
        kept = self._store.get("secrets", "authkey")
        key = bytes.fromhex(kept["hex"]) if kept else b""
        return base64.b64encode(hmac.digest(key, text.encode(), "sha512")).decode()


def _digest(password: str, salt: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), _ROUNDS).hex()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
