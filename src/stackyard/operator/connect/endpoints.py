"""Where the API of each node is: its own address if it answers there with its own certificate."""

from __future__ import annotations

import asyncio
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.clients.proxmox.server_certificate import read_server_certificate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.operator.connect.survey import NodeSeen

__all__ = ["NodeEndpoint", "find_endpoints"]

_PROBE_S = 4.0
_DEFAULT_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """How a node is reached.

    Attributes:
        url: The address of the API.
        fingerprint: What is pinned there; None where an authority of this system vouches for it.
        note: Why it is not the address of the node itself; empty if it is.
    """

    url: str
    fingerprint: str | None
    note: str = ""


async def find_endpoints(
    nodes: Sequence[NodeSeen], url: str, fingerprint: str | None
) -> dict[str, NodeEndpoint]:
    """Return how each node is reached.

    Each node of a cluster answers for all of them, so the address that was given is always good. A node's own
    address is better: the site keeps working while another node is down. It is used where it answers from
    here with the certificate that the cluster, which is trusted by now, reports for it.

    Args:
        nodes: The nodes.
        url: The address that was given.
        fingerprint: What is pinned for it.
    """
    found = await asyncio.gather(*(_find_endpoint(node, url, fingerprint) for node in nodes))
    return {node.name: endpoint for node, endpoint in zip(nodes, found, strict=True)}


async def _find_endpoint(node: NodeSeen, url: str, fingerprint: str | None) -> NodeEndpoint:
    if node.is_asked:
        return NodeEndpoint(url=url, fingerprint=fingerprint)
    if fingerprint is None:
        # An authority renews the certificates of such clusters every few weeks, and a pin would not fit then.
        note = "its certificate is not pinned, because this system verifies the one of the other node"
        return NodeEndpoint(url=url, fingerprint=None, note=note)
    note = "its address is hidden from the token"
    if node.ip is not None and node.fingerprint is not None:
        port = urllib.parse.urlsplit(url).port or _DEFAULT_PORT
        own = f"https://[{node.ip}]:{port}" if ":" in node.ip else f"https://{node.ip}:{port}"
        try:
            shown = await read_server_certificate(own, timeout_s=_PROBE_S, verifies=False)
        except StackyardError:
            note = f"{own} does not answer from here"
        else:
            if shown.fingerprint == node.fingerprint:
                return NodeEndpoint(url=own, fingerprint=node.fingerprint)
            note = f"{own} shows another certificate than the cluster reports for {node.name}"
    return NodeEndpoint(url=url, fingerprint=fingerprint, note=note)
