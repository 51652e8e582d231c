"""What a token says, how it is spelled, and how a forged one is recognised.

A token is `base64url(claims) . base64url(HMAC-SHA256)`. The claims are readable by everyone; the signature
covers them and the name of this format, so that nothing that was signed for another purpose passes here.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import InvalidInputError

__all__ = ["Claims", "TokenError", "TokenRefusal", "read_unverified_claims", "spell", "verify"]

_FORMAT = 2
_PURPOSE = b"stackyard controller token 2\n"
# No token of ours is nearly as long.
_LONGEST_CHARACTERS = 4096
ANY = "*"


class TokenRefusal(enum.StrEnum):
    """Why a token does not count."""

    MALFORMED = "malformed"
    UNKNOWN_KEY = "signed with a key that is not, or no longer, known"
    FORGED = "forged"
    EXPIRED = "expired"
    NOT_YET = "not valid yet"
    REVOKED = "revoked"


class TokenError(InvalidInputError):
    """A token cannot be created, or does not count: malformed, forged, expired or revoked."""

    code = "E-TOKEN"
    summary = "The token is not valid"
    default_remedy = "Issue a new one with `stackyard serve token issue`."

    def __init__(self, detail: str, *, refusal: TokenRefusal | None = None) -> None:
        super().__init__(detail)
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token opens, and for how long.

    Attributes:
        id: The number of the token.
        key: The number of the key that signs it.
        node: The one identity whose spec it opens; empty for none.
        spec: The one spec that it opens; with a node, only that node's if it is this one.
        repo: The one repository that it opens, `*` for all; empty for none.
        issued_at: When it was created, in seconds since 1970.
        expires_at: When it ends.
    """

    id: str
    key: str
    node: str = ""
    spec: str = ""
    repo: str = ""
    issued_at: float
    expires_at: float

    def opens_spec(self, identity: str, spec: str) -> bool:
        """Return whether it opens the spec of an identity."""
        if not self.node and not self.spec:
            return False
        return self.node in ("", identity) and self.spec in ("", spec)

    def opens_repository(self, name: str) -> bool:
        """Return whether it opens a repository."""
        return self.repo in (ANY, name)


def spell(claims: Claims, secret: bytes) -> str:
    """Return a signed token."""
    document: dict[str, Any] = {
        "v": _FORMAT,
        "kid": claims.key,
        "jti": claims.id,
        "iat": claims.issued_at,
        "exp": claims.expires_at,
    }
    for name, value in (("n", claims.node), ("s", claims.spec), ("r", claims.repo)):
        if value:
            document[name] = value
    payload = _encode(orjson.dumps(document))
    return f"{payload}.{_encode(_signature(payload, secret))}"


def read_unverified_claims(token: str) -> Claims:
    """Return what a token says, no matter who made it.

    Raises:
        TokenError: It is none of ours.
    """
    payload, dot, signature = token.partition(".")
    if len(token) > _LONGEST_CHARACTERS or not dot or not signature:
        raise _make_malformed_error()
    try:
        found = parse_json(_decode(payload), SMALL)
        if found["v"] != _FORMAT:
            raise ValueError(found["v"])
        texts = {name: found.get(name, "") for name in ("n", "s", "r")}
        if not all(isinstance(value, str) for value in (*texts.values(), found["jti"], found["kid"])):
            raise ValueError("not a text")
        return Claims(
            id=found["jti"],
            key=found["kid"],
            node=texts["n"],
            spec=texts["s"],
            repo=texts["r"],
            issued_at=float(found["iat"]),
            expires_at=float(found["exp"]),
        )
    except (JsonError, binascii.Error, KeyError, TypeError, ValueError) as err:
        raise _make_malformed_error() from err


def verify(token: str, secret: bytes) -> bool:
    """Return whether a token is signed with a key, in a time that does not depend on how wrong it is."""
    payload, _, signature = token.partition(".")
    # As texts: of one signature there is one spelling.
    given, wanted = signature.encode(errors="replace"), _encode(_signature(payload, secret)).encode()
    return hmac.compare_digest(given, wanted)


def _signature(payload: str, secret: bytes) -> bytes:
    return hmac.new(secret, _PURPOSE + payload.encode(errors="surrogateescape"), hashlib.sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _make_malformed_error() -> TokenError:
    return TokenError("That is no token of a controller.", refusal=TokenRefusal.MALFORMED)
