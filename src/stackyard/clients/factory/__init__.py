"""The Talos Image Factory: schematics, versions, and images as a stream.

`FactoryClient` speaks to one factory, the public one or a mirror. What it answers is data: every request has
limits of time, size and redirects, and an id that differs from the computed one is refused.
"""

from __future__ import annotations

from stackyard.clients.factory.client import FactoryClient, ImageDigest
from stackyard.clients.factory.failures import (
    FactoryAnswerError,
    FactoryError,
    FactoryRedirectError,
    FactoryRefusedError,
    FactorySlowError,
    FactoryUnreachableError,
    ImageContentError,
    ImageIncompleteError,
    SchematicIdError,
    SchematicUnknownError,
)
from stackyard.clients.factory.transport import FactoryLimits

__all__ = [
    "FactoryAnswerError",
    "FactoryClient",
    "FactoryError",
    "FactoryLimits",
    "FactoryRedirectError",
    "FactoryRefusedError",
    "FactorySlowError",
    "FactoryUnreachableError",
    "ImageContentError",
    "ImageDigest",
    "ImageIncompleteError",
    "SchematicIdError",
    "SchematicUnknownError",
]
