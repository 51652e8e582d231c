"""Second factors of users: one-time passwords by time, and recovery keys; checked for real.

A document `tfa/<userid>` has the `entries` of a user (each with `id type description created enable`, a TOTP
one with its `uri` and the `counter` of the last password that was used, the recovery keys with a `salt` and
the `hashes` of those that are left), how often a password was wrong (`failures`), and whether that was too
often (`totp_locked`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.world.store import Document, Store

__all__ = [
    "COLLECTION",
    "RECOVERY",
    "Totp",
    "challenge_for",
    "entries_of",
    "format_factor",
    "new_recovery",
    "verify",
]

COLLECTION = "tfa"
RECOVERY = "recovery"

_ALGORITHMS = {"SHA1": "sha1", "SHA256": "sha256", "SHA512": "sha512"}
_MOST_FAILURES = 8
_KEYS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Totp:
    """One-time passwords by time, as an `otpauth://totp/...` address describes them."""

    secret: bytes
    digits: int = 6
    period_s: int = 30
    algorithm: str = "sha1"

    @classmethod
    def parse(cls, uri: str) -> Totp:
        """Read an address.

        Raises:
            PveError: It is none.
        """
        if not uri.startswith("otpauth://totp/"):
            raise PveError("not an otpauth uri")
        account, mark, query = uri.removeprefix("otpauth://totp/").partition("?")
        if not mark:
            raise PveError("missing '?' in otp uri")
        if not account:
            raise PveError("missing account in otpauth uri")
        fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        try:
            text = fields.get("secret", "").rstrip("=").upper()
            secret = base64.b32decode(text + "=" * (-len(text) % 8))
            digits, period_s = int(fields.get("digits", 6)), int(fields.get("period", 30))
        except (binascii.Error, ValueError) as err:
            raise PveError("failed to decode otp secret in otpauth url") from err
        algorithm = _ALGORITHMS.get(fields.get("algorithm", "SHA1").upper())
        if algorithm is None or not 6 <= digits <= 9 or not 1 <= period_s <= 86_400:
            raise PveError("invalid otpauth uri")
        return cls(secret=secret, digits=digits, period_s=period_s, algorithm=algorithm)

    def at(self, moment: float) -> str:
        """Return the password of a moment."""
        return self._of(int(moment) // self.period_s)

    def counter(self, value: str, moment: float) -> int | None:
        """Return the number of the period that a password is for, of the present one and those beside it."""
        present = int(moment) // self.period_s
        for number in (present - 1, present, present + 1):
            if hmac.compare_digest(self._of(number).encode(), value.encode()):
                return number
        return None

    def _of(self, number: int) -> str:
        digest = hmac.digest(self.secret, max(0, number).to_bytes(8, "big"), self.algorithm)
        start = digest[-1] & 0xF
        plain = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
        return f"{plain % 10**self.digits:0{self.digits}d}"


def entries_of(store: Store, userid: str) -> list[dict[str, Any]]:
    """Return the second factors of a user."""
    return [dict(entry) for entry in (store.get(COLLECTION, userid) or {}).get("entries", ())]


def new_recovery(now: int) -> tuple[dict[str, Any], list[str]]:
    """Return new recovery keys: the entry that is kept, and the keys, which are shown once."""
    salt = secrets.token_hex(8)
    keys = []
    for _ in range(_KEYS):
        text = secrets.token_hex(8)
        keys.append("-".join(text[start : start + 4] for start in range(0, 16, 4)))
    entry = {
        "id": RECOVERY,
        "type": RECOVERY,
        "description": "",
        "created": now,
        "enable": 1,
        "salt": salt,
        "hashes": [_hash(salt, key) for key in keys],
    }
    return entry, keys


def challenge_for(store: Store, userid: str) -> dict[str, Any] | None:
    """Return what a user has to answer after the password, None if nothing."""
    enabled = [entry for entry in entries_of(store, userid) if entry["enable"]]
    challenge: dict[str, Any] = {}
    if any(entry["type"] == "totp" for entry in enabled):
        challenge["totp"] = True
    for entry in enabled:
        if entry["type"] == RECOVERY:
            challenge["recovery"] = [number for number, kept in enumerate(entry["hashes"]) if kept]
    return challenge or None


def verify(store: Store, userid: str, response: str, now: float) -> bool:
    """Return whether an answer (`totp:123456`, `recovery:...`) is right, and use it up; count wrong ones."""
    document = dict(store.get(COLLECTION, userid) or {})
    kind, _, value = response.partition(":")
    if kind == "totp":
        done = not document.get("totp_locked") and _verify_totp(document, value, now)
        if not document.get("totp_locked"):
            document["failures"] = 0 if done else int(document.get("failures", 0)) + 1
            document["totp_locked"] = int(document["failures"] >= _MOST_FAILURES)
    elif kind == RECOVERY:
        done = _verify_recovery(document, value)
    else:
        return False
    store.put(COLLECTION, userid, document)
    return done


def _verify_totp(document: dict[str, Any], value: str, now: float) -> bool:
    """Take a password that was not used before, and note that it is used now."""
    entries = [dict(entry) for entry in document.get("entries", ())]
    for entry in entries:
        if entry["type"] != "totp" or not entry["enable"]:
            continue
        counter = Totp.parse(str(entry["uri"])).counter(value, now)
        if counter is not None and counter > int(entry.get("counter", -1)):
            entry["counter"] = counter
            document["entries"] = entries
            return True
    return False


def _verify_recovery(document: dict[str, Any], value: str) -> bool:
    entries = [dict(entry) for entry in document.get("entries", ())]
    for entry in entries:
        if entry["type"] != RECOVERY or not entry["enable"]:
            continue
        found = _hash(str(entry["salt"]), value)
        if found in entry["hashes"]:
            entry["hashes"] = [None if kept == found else kept for kept in entry["hashes"]]
            document["entries"] = entries
            return True
    return False


def _hash(salt: str, key: str) -> str:
    return hmac.digest(salt.encode(), key.encode(), hashlib.sha256).hex()


def format_factor(entry: Document) -> dict[str, Any]:
    """Return a second factor as the API shows it."""
    row = {key: entry[key] for key in ("id", "type", "description", "created")}
    return row if entry["enable"] else {**row, "enable": 0}
