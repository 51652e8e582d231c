"""Tokens that the controller signs: scoped to one node, spec or repository, short-lived, listed and revoked.

`claims` says what a token is, spells it and tells a forged one, `store` keeps the keys and the list (in a
file that several processes share, or in memory for one run), and `issuing` puts them together. Nothing here
knows HTTP.
"""

from __future__ import annotations

from stackyard.controller.tokens.claims import Claims, TokenError, TokenRefusal, spell, unsigned_claims
from stackyard.controller.tokens.issuing import Tokens
from stackyard.controller.tokens.store import FileStore, Issued, MemoryStore, SigningKey, TokenStore

__all__ = [
    "Claims",
    "FileStore",
    "Issued",
    "MemoryStore",
    "SigningKey",
    "TokenError",
    "TokenRefusal",
    "TokenStore",
    "Tokens",
    "spell",
    "unsigned_claims",
]
