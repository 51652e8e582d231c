"""The log of each request: who, what, how it ended. Never headers, bodies or secret query values."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from stackyard.base.redaction import MASK

__all__ = ["Access", "OnAccess", "mask_path"]

# A parameter is secret when its name holds one of these: cipassword, api_key and vncticket are covered.
_SECRET_NAME = re.compile(
    r"pass|pwd|token|ticket|secret|otp|key|sig|credential|auth|csrf|challenge|tfa|session", re.IGNORECASE
)
_SEPARATORS = re.compile(r"([&;])")
_USER_INFO = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#@]*@", re.IGNORECASE)

UNKNOWN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One request that ended.

    Attributes:
        peer: The address and port of the client.
        method: The method, or `-` where what came was not HTTP.
        path: The path as sent, with the values of secret query parameters masked.
        status: The status that was answered (or would have been, had the client stayed).
        bytes: What was sent, headers included.
        elapsed_s: From the call of the handler to the end of the response.
        error: Why it did not go well: what the handler raised, or what the client did (`ClientGoneError`,
            `ClientStalledError`). It may quote what the client sent: redact it before showing it. Keeping it
            keeps the whole request in memory.
    """

    peer: str
    method: str
    path: str
    status: int
    bytes: int
    elapsed_s: float
    error: BaseException | None = None


OnAccess = Callable[[Access], None]


def mask_path(raw_path: str) -> str:
    """Return a request's path with the values of secret query parameters masked, safe to print."""
    path = raw_path if raw_path.isascii() else raw_path.encode("utf-8", "backslashreplace").decode()
    if "@" in path:
        path = _USER_INFO.sub(rf"\1{MASK}@", path)
    before, mark, query = path.partition("?")
    if not mark:
        return path
    return before + mark + "".join(_mask_parameter(part) for part in _SEPARATORS.split(query))


def _mask_parameter(part: str) -> str:
    name, mark, value = part.partition("=")
    # The name may be written percent-encoded, which must not hide it from us.
    if value and _SECRET_NAME.search(urllib.parse.unquote_plus(name)):
        return f"{name}{mark}{MASK}"
    return part
