"""The Talos API of the nodes of one cluster, with the certificate of its administrator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.talos import TalosClient, TalosCredentials, TalosEndpoint
from stackyard.talosconfig.bundle import issue_admin

if TYPE_CHECKING:
    from stackyard.sources.cluster.model import ClusterNode
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["TalosAccess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosAccess:
    """Opens the API of nodes.

    Attributes:
        credentials: The certificate of an administrator of the cluster.
        timeout_s: How long one call may take.
    """

    credentials: TalosCredentials = field(repr=False)
    timeout_s: float = 15.0

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

    def open(self, node: ClusterNode) -> TalosClient:
        """Return a client of a node that has its configuration."""
        endpoint = TalosEndpoint(host=str(node.address), credentials=self.credentials)
        return TalosClient(endpoint, timeout_s=self.timeout_s)

    def open_maintenance(self, node: ClusterNode) -> TalosClient:
        """Return a client of a node in maintenance mode."""
        return TalosClient(TalosEndpoint(host=str(node.address)), timeout_s=self.timeout_s)
