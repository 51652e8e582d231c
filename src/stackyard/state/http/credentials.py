"""What a client shows in its Authorization header."""

from __future__ import annotations

import base64
import binascii
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["Credentials", "Scheme", "read_credentials"]


class Scheme(enum.StrEnum):
    """How credentials are shown; every one but `none` is an attempt to log in."""

    NONE = "none"
    BASIC = "Basic"
    BEARER = "Bearer"
    UNKNOWN = "unknown scheme"
    UNREADABLE = "unreadable"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What was shown.

    Attributes:
        scheme: How.
        name: Who it is for; empty for a bearer.
        secret: The token or password; empty where there is none that can be read.
    """

    scheme: Scheme
    name: str = ""
    secret: str = field(default="", repr=False)


def read_credentials(request: web.BaseRequest) -> Credentials:
    """Return what a request shows, whatever it is."""
    header = request.headers.get("Authorization", "").strip()
    if not header:
        return Credentials(scheme=Scheme.NONE)
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return Credentials(scheme=Scheme.BEARER, secret=value.strip())
    if kind.lower() != "basic":
        return Credentials(scheme=Scheme.UNKNOWN)
    try:
        name, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return Credentials(scheme=Scheme.UNREADABLE)
    return Credentials(scheme=Scheme.BASIC, name=name, secret=secret)
