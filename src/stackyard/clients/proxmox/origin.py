"""Where the settings of a connection are written: an error names the file, the line and the key."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.proxmox.failures import (
    LoginRefusedError,
    ProxmoxUnreachableError,
    UntrustedServerError,
)

if TYPE_CHECKING:
    from stackyard.base.errors import Location
    from stackyard.clients.proxmox.connection import Connection

__all__ = ["Origin", "name_origin"]

_DEFAULT_PORT = 443
_PROBE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the settings of a connection are written; nothing where they came from the environment.

    Attributes:
        endpoint: The address of the API.
        credentials: What names the token.
        fingerprint: The fingerprint, or where it would be written.
        token: What the secrets call the token: `api_tokens.pve1`.
    """

    endpoint: Location | None = None
    credentials: Location | None = None
    fingerprint: Location | None = None
    token: str = ""


async def name_origin(err: LoginRefusedError | ProxmoxUnreachableError, connection: Connection) -> None:
    """Add to an error where the setting is written that it is about, and what to write there."""
    origin = connection.origin
    if isinstance(err, UntrustedServerError):
        err.where = origin.fingerprint
        seen = err.seen or await _fetch_fingerprint(connection)
        if seen is not None:
            err.detail = err.detail if seen in err.detail else f"{err.detail} Its fingerprint is {seen}."
            into = f" into {origin.fingerprint.path}" if origin.fingerprint is not None else ""
            err.remedy = (
                "Compare it with `pvenode cert info` on the node. If it is the same, write"
                f"{into}:\n  api_fingerprint: {seen}"
            )
    elif isinstance(err, LoginRefusedError):
        err.where = origin.credentials
        if origin.token:
            err.remedy = (
                "See whether the token is there and when it expires (`pveum user token list USER`). "
                f"Extend it, or put the right one into secrets.yaml as `{origin.token}` "
                "(`stackyard secrets edit`)."
            )
    else:
        err.where = origin.endpoint
        if origin.endpoint is not None:
            # A lab listens on this machine, and ends with it.
            is_here = urllib.parse.urlsplit(connection.endpoint).hostname in ("127.0.0.1", "::1", "localhost")
            start = " If it is a lab, start it: `stackyard lab up`." if is_here else ""
            err.remedy = (
                f"Check `api_endpoint` ({connection.endpoint}), the network, and that pveproxy runs there; "
                f"then run the command again.{start}"
            )


async def _fetch_fingerprint(connection: Connection) -> str | None:
    """Return the fingerprint of whatever certificate the server shows; nothing is sent to it."""
    parts = urllib.parse.urlsplit(connection.base_url())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or _DEFAULT_PORT, ssl=context
            )
    except (OSError, TimeoutError):
        return None
    try:
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return None if found is None else hashlib.sha256(found).digest().hex(":").upper()
    finally:
        with contextlib.suppress(OSError, AttributeError):
            writer.transport.abort()
