"""The one door to serve HTTP.

`serve` runs a server for the length of a block: plain or TLS, with deadlines and limits for every way in
which a client can be slow, silent, large or gone, and a stop that takes less than two seconds whoever is
connected. One handler answers everything and does its own routing; `respond` makes its responses, with any
status and reason. Certificates are made in-process (`make_certificate`), kept in a folder
(`kept_certificate`) or given by the user (`given_certificate`); `peer_certificate` says who a client is under
mutual TLS. `Access` is what is told about each request. This package does not know what is served, and
neither prints nor logs.
"""

from __future__ import annotations

from stackyard.serving.access_log import Access, OnAccess, mask_path
from stackyard.serving.certificate import (
    Certificate,
    CertificateError,
    given_certificate,
    kept_certificate,
    make_certificate,
)
from stackyard.serving.connection import ClientGoneError, connection_notes, mark_known
from stackyard.serving.deadlines import ClientStalledError
from stackyard.serving.gate import Handler
from stackyard.serving.limits import Limits
from stackyard.serving.listening import AddressForbiddenError, AddressInUseError, ListenError
from stackyard.serving.responses import is_chunked, respond
from stackyard.serving.server import Server, serve
from stackyard.serving.tls import PeerCertificate, Tls, peer_certificate

__all__ = [
    "Access",
    "AddressForbiddenError",
    "AddressInUseError",
    "Certificate",
    "CertificateError",
    "ClientGoneError",
    "ClientStalledError",
    "Handler",
    "Limits",
    "ListenError",
    "OnAccess",
    "PeerCertificate",
    "Server",
    "Tls",
    "connection_notes",
    "given_certificate",
    "is_chunked",
    "kept_certificate",
    "make_certificate",
    "mark_known",
    "mask_path",
    "peer_certificate",
    "respond",
    "serve",
]
