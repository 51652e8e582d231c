"""Tokens that the controller signs: scoped to one node, spec or repository, short-lived, listed and revoked.

`claims` defines, encodes and verifies a token. `store` keeps the keys and the list (in a file that several
processes share, or in memory for one run). `issue` joins both. Nothing here knows HTTP.
"""

from __future__ import annotations

from stackyard.controller.tokens.claims import Claims, TokenError, TokenRefusal, read_unverified_claims, spell
from stackyard.controller.tokens.issue import Tokens
from stackyard.controller.tokens.store import IssuedToken, MemoryStore, SigningKey, TokenObjects, TokenStore

__all__ = [
    "Claims",
    "IssuedToken",
    "MemoryStore",
    "SigningKey",
    "TokenError",
    "TokenObjects",
    "TokenRefusal",
    "TokenStore",
    "Tokens",
    "read_unverified_claims",
    "spell",
]
