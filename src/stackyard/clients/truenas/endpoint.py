"""Where a TrueNAS is, and what proves that it is the one."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from stackyard.base.errors import UsageError

__all__ = ["TrueNasEndpoint"]

_SHA256 = re.compile(r"[0-9A-F]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueNasEndpoint:
    """Where a TrueNAS is.

    Attributes:
        url: Its address: `https://nas.lan`, with a port where it is another than 443.
        api_key: The key of the user.
        user: The name of the user that the key is of; TrueNAS 27 and later need it.
        fingerprint: The SHA-256 of its certificate in hexadecimal digits, with colons or without.
        authority: The certificate of its authority, in PEM.
    """

    url: str
    api_key: str = field(repr=False)
    user: str = ""
    fingerprint: str = ""
    authority: str = ""

    @property
    def base(self) -> URL:
        """The address without a path.

        Raises:
            UsageError: It is none, or has no encryption.
        """
        try:
            url = URL(self.url)
        except ValueError as err:
            raise UsageError(f"'{self.url}' is not an address: write https://HOST.") from err
        if url.scheme != "https" or not url.host or url.user or url.query_string or url.path not in ("", "/"):
            raise UsageError(
                f"'{self.url}' is not the address of a TrueNAS: write https://HOST. TrueNAS revokes a key "
                "that it receives without TLS."
            )
        return url.origin()

    @property
    def label(self) -> str:
        """The host, for a person."""
        return self.base.authority

    def make_tls(self) -> ssl.SSLContext | aiohttp.Fingerprint:
        """Return what verifies the certificate.

        Raises:
            UsageError: The fingerprint or the authority cannot be read.
        """
        if self.fingerprint:
            digits = self.fingerprint.replace(":", "").upper()
            if not _SHA256.fullmatch(digits):
                raise UsageError(
                    "`fingerprint` has to be the SHA-256 of a certificate: 64 hexadecimal digits."
                )
            return aiohttp.Fingerprint(bytes.fromhex(digits))
        try:
            return ssl.create_default_context(cadata=self.authority or None)
        except (ssl.SSLError, ValueError) as err:
            raise UsageError("`authority` holds no certificate in PEM.") from err
