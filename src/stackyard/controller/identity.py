"""The certificate of the controller: given by the user, or made, kept with the site and renewed by us."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import urllib.parse
from typing import TYPE_CHECKING

from stackyard.base import directories, files, serving
from stackyard.base.errors import UsageError
from stackyard.base.serving.certificate import TRUST_FILE, parse_kept, renew_certificate
from stackyard.clients.objects import ABSENT, ANYTHING, ConflictError
from stackyard.sources.site.pull import CERTIFICATE, CERTIFICATE_FOLDER
from stackyard.sources.store.sealed import open_sealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects
    from stackyard.controller.options import ControllerOptions
    from stackyard.sources.site.load import Site
    from stackyard.sources.store import ChosenStore

__all__ = ["certificate_of", "forget_certificate", "renewal_in_s"]

# An address that no one answers at is enough: the system is only asked from where it would be reached.
_ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
# A day after `read_or_create_certificate` begins to find it too old.
_RENEW_BEFORE = datetime.timedelta(days=29)
_LONGEST_WAIT_S = 7 * 86_400.0
# The certificate with its key, sealed.
CERTIFICATE_KEY = "controller/certificate-key"
_ATTEMPTS = 20


def certificate_of(options: ControllerOptions, site: Site) -> serving.Certificate:
    """Return the certificate to show.

    Raises:
        UsageError: A certificate is given without its key, or the other way round.
        CertificateError: It cannot be used.
        FileError: It cannot be read or kept.
        StoreError: The store of the site cannot be used.
    """
    if (options.cert is None) != (options.key is None):
        raise UsageError("A certificate and its key are given together (--cert and --key).")
    if options.cert is not None and options.key is not None:
        return serving.read_certificate(options.cert, options.key)
    names = list(dict.fromkeys(_names(options, site)))
    if options.cert_dir is not None:
        return serving.read_or_create_certificate(options.cert_dir, names)
    kept = _stored_certificate(site.store, names)
    # For clients on this machine that trust it as their authority.
    folder = directories.ensure_private(site.root / CERTIFICATE_FOLDER)
    files.replace_file(folder / TRUST_FILE, kept.certificate_pem)
    return kept


def _stored_certificate(store: ChosenStore, names: list[str]) -> serving.Certificate:
    """Return the certificate in the store of the site, made or renewed there if need be.

    Several machines may show it: a renewal keeps the names that others need, and the key that guests pin.
    """
    with contextlib.closing(store.open()) as objects:
        sealed = open_sealed(store, objects)
        for _ in range(_ATTEMPTS):
            stored = sealed.get(CERTIFICATE_KEY)
            kept = None if stored is None else parse_kept(stored.data, CERTIFICATE_KEY)
            wanted = renew_certificate(kept, [*names, *(() if kept is None else kept.names)])
            if wanted is not kept:
                try:
                    expect = ABSENT if stored is None else stored.tag
                    sealed.put(CERTIFICATE_KEY, wanted.as_pem(), expect=expect)
                except ConflictError:
                    continue
            public = objects.get(CERTIFICATE)
            if public is None or public.data != wanted.certificate_pem:
                objects.put(CERTIFICATE, wanted.certificate_pem, expect=ANYTHING)
            return wanted
    raise ConflictError(CERTIFICATE_KEY)


def forget_certificate(objects: Objects) -> bool:
    """Remove the certificate of a controller and its key from the store; return whether there was one.

    Raises:
        StoreError: The store cannot be used.
    """
    was_there = objects.get(CERTIFICATE_KEY) is not None
    for key in (CERTIFICATE_KEY, CERTIFICATE):
        objects.delete(key)
    return was_there


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
