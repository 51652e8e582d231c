"""The API of TrueNAS: datasets, over JSON-RPC on a websocket, or over REST where a release has no other.

`TrueNasClient` finds out which protocol there is. The key goes over TLS only: TrueNAS revokes a key that
comes without. What it answers is data.
"""

from __future__ import annotations

from stackyard.clients.truenas.client import TrueNasClient
from stackyard.clients.truenas.dataset import Dataset, DatasetProperties
from stackyard.clients.truenas.endpoint import TrueNasEndpoint
from stackyard.clients.truenas.failures import (
    TrueNasAnswerError,
    TrueNasBusyError,
    TrueNasCertificateError,
    TrueNasError,
    TrueNasLoginError,
    TrueNasRefusedError,
    TrueNasUnreachableError,
)

__all__ = [
    "Dataset",
    "DatasetProperties",
    "TrueNasAnswerError",
    "TrueNasBusyError",
    "TrueNasCertificateError",
    "TrueNasClient",
    "TrueNasEndpoint",
    "TrueNasError",
    "TrueNasLoginError",
    "TrueNasRefusedError",
    "TrueNasUnreachableError",
]
