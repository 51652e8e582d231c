"""Digests, by which clients notice that someone else changed something."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

__all__ = ["digest_of"]


def digest_of(*parts: Any) -> str:
    """Return the SHA-1 of some content; what is equal has the same."""
    return hashlib.sha1(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), usedforsecurity=False).hexdigest()
