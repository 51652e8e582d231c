"""The address of a store behind HTTPS: `https://host:port/path?fingerprint=AB:CD:...`."""

from __future__ import annotations

import re
import ssl
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.addresses import is_loopback
from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HttpAddress"]

_FORM = "https://host:port[/path][?fingerprint=AB:CD:...] or [?ca=FILE]"
_SHA256 = re.compile(r"[0-9A-F]{64}")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*")
_SCHEMES = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where a state service is. It never holds a token.

    Attributes:
        host: Its name or address.
        port: Its port.
        path: What comes before the paths of the service, without a slash at the end.
        is_tls: Whether the connection is encrypted.
        fingerprint: The SHA-256 of its certificate in hexadecimal digits; empty to verify it by authorities.
        ca: A file with the authorities to trust; empty for those of the system.
    """

    host: str
    port: int
    path: str = ""
    is_tls: bool = True
    fingerprint: str = ""
    ca: str = ""

    @classmethod
    def parse(cls, address: str) -> HttpAddress:
        """Read an address.

        Raises:
            UsageError: It makes no sense, holds a password, or would send a token in plain text.
        """
        _refuse_password(address)
        parts, query = _split(address)
        host, path = parts.hostname or "", parts.path.rstrip("/")
        if not host or parts.scheme not in _SCHEMES or parts.fragment or not _PATH.fullmatch(path):
            raise UsageError(f"The address of a state service must be {_FORM}.")
        is_tls = parts.scheme == "https"
        if not is_tls and not is_loopback(host):
            raise UsageError(
                f"Plain HTTP to {host} would send the token and the states unencrypted.",
                remedy="Use https://. Plain HTTP works only with a service on this machine.",
            )
        if not is_tls and query:
            raise UsageError("fingerprint and ca need an https:// address.")
        return cls(
            host=host,
            port=parts.port or _SCHEMES[parts.scheme],
            path=path,
            is_tls=is_tls,
            fingerprint=_read_fingerprint(query.get("fingerprint", "")),
            ca=query.get("ca", ""),
        )

    @property
    def label(self) -> str:
        """The service, for a person."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.path}"

    def make_context(self) -> ssl.SSLContext | None:
        """Return what verifies the certificate; None without TLS.

        Raises:
            UsageError: The file with the authorities cannot be used.
        """
        if not self.is_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except (OSError, ValueError) as err:
            reason = err.strerror if isinstance(err, OSError) and err.strerror else "it holds no certificate"
            raise UsageError(f"The certificates in {self.ca} cannot be used: {reason}.") from err
        if self.fingerprint:
            # The certificate itself is compared, before anything is sent.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def _split(address: str) -> tuple[urllib.parse.SplitResult, Mapping[str, str]]:
    try:
        parts = urllib.parse.urlsplit(address)
        pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        _ = parts.port
    except ValueError as err:
        raise UsageError(f"The address of a state service must be {_FORM}.") from err
    query = dict(pairs)
    if len(query) != len(pairs) or not query.keys() <= {"fingerprint", "ca"} or len(query) > 1:
        raise UsageError(f"The address of a state service takes one parameter, fingerprint or ca: {_FORM}.")
    return parts, query


def _refuse_password(address: str) -> None:
    head = address.partition("?")[0]
    if "@" in head.partition("://")[2]:
        raise UsageError(
            "The address of the store holds a user name or a password. It was not used.",
            remedy="Remove it from the address, and replace it, since it may be in logs. Put the token into"
            " STACKYARD_STORE_TOKEN, or into a file that STACKYARD_STORE_TOKEN_FILE names.",
        )


def _read_fingerprint(text: str) -> str:
    digits = text.replace(":", "").upper()
    if digits and not _SHA256.fullmatch(digits):
        raise UsageError(
            "fingerprint must be the SHA-256 of a certificate, as in the output of"
            " `stackyard state serve`: AB:CD:..."
        )
    return digits
