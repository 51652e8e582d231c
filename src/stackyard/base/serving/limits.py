"""How much a client may send, how long it may take, and how many may be connected."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

__all__ = ["ServerLimits"]

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a server grants its clients.

    Attributes:
        max_header_bytes: Request line and headers together; more is answered with 431.
        max_body_bytes: What `request.read()` (and `text`, `json`, `post`) takes before it answers 413; None
            is no limit. A handler that streams `request.content` counts for itself.
        header_timeout_s: From connecting (or from the first byte of a later request) to the end of the
            headers, the TLS handshake included.
        body_timeout_s: The longest silence in the middle of a request body.
        idle_timeout_s: The longest silence between two requests on one connection.
        write_timeout_s: The longest time for which a client may take nothing of a response that is waiting.
        max_connections: How many may be connected at once. A newcomer past it takes the place of the
            connection that has been silent the longest; where none is silent it is answered with 503 (under
            TLS it is closed).
        decompress_requests: Whether bodies with a Content-Encoding reach the handler decompressed. Off: the
            handler sees the bytes that were sent. On: `max_body_bytes` counts the decompressed bytes.
    """

    max_header_bytes: int = 64 * KIB
    max_body_bytes: int | None = 64 * MIB
    header_timeout_s: float = 15.0
    body_timeout_s: float = 30.0
    idle_timeout_s: float = 75.0
    write_timeout_s: float = 30.0
    max_connections: int = 512
    decompress_requests: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool) and value is not None and value <= 0:
                raise ValueError(f"{field.name} must be more than zero, not {value}")
