"""The only package that serves HTTP.

`serve` runs a server for the length of a block, plain or with TLS. Deadlines and limits cover every client
that is slow, silent, large or gone. A stop takes less than two seconds, whatever is connected. One handler
answers every request and does its own routing; `respond` builds its responses, with any status and reason.

Certificates are created in-process (`make_certificate`), kept in a folder (`read_or_create_certificate`) or
given by the user (`read_certificate`). `peer_certificate` identifies a client under mutual TLS. `Access`
describes one request for logs and metrics. This package does not know what is served, and neither prints nor
logs.

The names of certificates are imported when they are used: a server without TLS loads no cryptography.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stackyard.base.serving.access_log import Access, OnAccess, mask_path
from stackyard.base.serving.connection import ClientGoneError, connection_notes, mark_known
from stackyard.base.serving.deadlines import ClientStalledError
from stackyard.base.serving.gate import Handler
from stackyard.base.serving.limits import ServerLimits
from stackyard.base.serving.responses import is_chunked, respond
from stackyard.base.serving.server import Server, serve
from stackyard.base.serving.sockets import AddressForbiddenError, AddressInUseError, ListenError
from stackyard.base.serving.tls import PeerCertificate, Tls, peer_certificate

if TYPE_CHECKING:
    from stackyard.base.serving.certificate import (
        Certificate,
        CertificateError,
        make_certificate,
        read_certificate,
        read_or_create_certificate,
    )

__all__ = [
    "Access",
    "AddressForbiddenError",
    "AddressInUseError",
    "Certificate",
    "CertificateError",
    "ClientGoneError",
    "ClientStalledError",
    "Handler",
    "ListenError",
    "OnAccess",
    "PeerCertificate",
    "Server",
    "ServerLimits",
    "Tls",
    "connection_notes",
    "is_chunked",
    "make_certificate",
    "mark_known",
    "mask_path",
    "peer_certificate",
    "read_certificate",
    "read_or_create_certificate",
    "respond",
    "serve",
]

_OF_CERTIFICATES = frozenset(
    ("Certificate", "CertificateError", "read_certificate", "read_or_create_certificate", "make_certificate")
)


def __getattr__(name: str) -> object:
    """Load a name of certificates when it is first used."""
    if name not in _OF_CERTIFICATES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.certificate"), name)
