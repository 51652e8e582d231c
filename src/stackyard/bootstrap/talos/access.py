"""The Talos API of the nodes of one cluster, with the certificate of its administrator."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.talos import TalosClient, TalosCredentials, TalosEndpoint
from stackyard.talosconfig.bundle import issue_admin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.sources.cluster.model import ClusterNode
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["TalosAccess"]

# How many nodes of one kind are spoken to at the same time.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _Slots:
    """Room for conversations with nodes.

    Control plane nodes have room of their own: workers wait for them, and may never take the last of it.
    """

    controllers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    workers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def of(self, node: ClusterNode) -> asyncio.Semaphore:
        """Return the room for nodes of a kind."""
        return self.controllers if node.is_controller else self.workers


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosAccess:
    """Opens the API of nodes.

    Attributes:
        credentials: The certificate of an administrator of the cluster.
        timeout_s: How long one call may take.
    """

    credentials: TalosCredentials = field(repr=False)
    timeout_s: float = 15.0
    _slots: _Slots = field(default_factory=_Slots, repr=False, compare=False)

    @classmethod
    def of(cls, bundle: SecretsBundle) -> TalosAccess:
        """Return the access that the secrets of a cluster give; the certificate lives in memory."""
        client = issue_admin(bundle)
        return cls(
            credentials=TalosCredentials(
                ca=bundle.os.crt.encode(),
                certificate=client.crt.encode(),
                key=client.key.encode(),
            )
        )

    @contextlib.asynccontextmanager
    async def open(self, node: ClusterNode) -> AsyncIterator[TalosClient]:
        """Give a client of a node that has its configuration."""
        endpoint = TalosEndpoint(host=str(node.address), credentials=self.credentials)
        async with self._slots.of(node), TalosClient(endpoint, timeout_s=self.timeout_s) as client:
            yield client

    @contextlib.asynccontextmanager
    async def open_maintenance(
        self, node: ClusterNode, *, fingerprint: str | None = None
    ) -> AsyncIterator[TalosClient]:
        """Give a client of a node in maintenance mode.

        Args:
            node: The node.
            fingerprint: That of its certificate, where it is known; another one is refused.
        """
        endpoint = TalosEndpoint(host=str(node.address), fingerprint=fingerprint)
        async with self._slots.of(node), TalosClient(endpoint, timeout_s=self.timeout_s) as client:
            yield client
