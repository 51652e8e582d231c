"""The certificate of the controller: given by the user, or made, kept with the site and renewed by us."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import urllib.parse
from typing import TYPE_CHECKING

from stackyard.base import serving
from stackyard.base.errors import UsageError
from stackyard.sources.site.pull import CERTIFICATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.controller.options import ControllerOptions
    from stackyard.sources.site.load import Site

__all__ = ["certificate_of", "renewal_in_s"]

# An address that no one answers at is enough: the system is only asked from where it would be reached.
_ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
# A day after `read_or_create_certificate` begins to find it too old.
_RENEW_BEFORE = datetime.timedelta(days=29)
_LONGEST_WAIT_S = 7 * 86_400.0


def certificate_of(options: ControllerOptions, site: Site) -> serving.Certificate:
    """Return the certificate to show.

    Raises:
        UsageError: A certificate is given without its key, or the other way round.
        CertificateError: It cannot be used.
        FileError: It cannot be read or kept.
    """
    if (options.cert is None) != (options.key is None):
        raise UsageError("A certificate and its key are given together (--cert and --key).")
    if options.cert is not None and options.key is not None:
        return serving.read_certificate(options.cert, options.key)
    folder = options.cert_dir or site.root / CERTIFICATE_FOLDER
    return serving.read_or_create_certificate(folder, list(dict.fromkeys(_names(options, site))))


def renewal_in_s(certificate: serving.Certificate) -> float:
    """Return when to look again whether the certificate has to be renewed."""
    left = certificate.not_after - _RENEW_BEFORE - datetime.datetime.now(datetime.UTC)
    return min(_LONGEST_WAIT_S, max(3600.0, left.total_seconds()))


def _names(options: ControllerOptions, site: Site) -> Iterator[str]:
    """Return every name and address by which a client may reach us, the main one first."""
    defaults = site.settings.defaults
    server = urllib.parse.urlsplit(defaults.spec_server or defaults.server_url or "").hostname
    if server:
        yield server
    yield from options.names
    host = socket.gethostname()
    for name in (host, f"{host}.{defaults.domain}" if defaults.domain and "." not in host else ""):
        if _is_dns_name(name):
            yield name
    yield from ("localhost", "127.0.0.1", "::1")
    with contextlib.suppress(ValueError):
        if not ipaddress.ip_address(options.bind).is_unspecified:
            yield options.bind
    yield from _own_addresses()


def _is_dns_name(name: str) -> bool:
    return bool(name) and name.replace("-", "").replace(".", "").isalnum() and name.isascii()


def _own_addresses() -> Iterator[str]:
    for address, family in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Nothing is sent: a datagram socket only chooses the address that it would send from.
            probe.connect((address, 9))
            yield str(probe.getsockname()[0]).partition("%")[0]
