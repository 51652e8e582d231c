"""The Talos API of a node: gRPC over TLS on port 50000, in maintenance mode and with client certificates.

`TalosClient` speaks to one endpoint. Without credentials it is for a node in maintenance mode, whose
certificate proves nothing unless its fingerprint is known. With credentials both sides prove who they are.
`grpclib` stands on Python's own TLS: the certificates of Talos are Ed25519, which grpcio does not offer.
"""

from __future__ import annotations

from stackyard.clients.talos.client import TalosClient
from stackyard.clients.talos.connection import TalosCredentials, TalosEndpoint
from stackyard.clients.talos.failures import (
    FingerprintError,
    TalosCertificateError,
    TalosClockError,
    TalosError,
    TalosRefusedError,
    TalosUnreachableError,
)

__all__ = [
    "FingerprintError",
    "TalosCertificateError",
    "TalosClient",
    "TalosClockError",
    "TalosCredentials",
    "TalosEndpoint",
    "TalosError",
    "TalosRefusedError",
    "TalosUnreachableError",
]
