"""Entries that are written once and represent several containers: `openbao_cluster` and `node_services`.

Where an entry that is generated has the key of one that is written, or of another generated one, both are
reported: one would silently take the place of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.deployment.scope import Scope
    from stackyard.sources.deployment.text import Path

__all__ = ["LARGEST_OCTET", "SMALLEST_OCTET", "Generated", "generate"]

SMALLEST_OCTET, LARGEST_OCTET = 2, 254


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One container that a generator represents.

    Attributes:
        key: Its key.
        entry: What it is, as if it were written.
        path: Where it was written, in the object.
        octet: The host number of its address, where it has a fixed one.
    """

    key: str
    entry: Mapping[str, Any]
    path: Path
    octet: int | None = None


def generate(scope: Scope) -> Iterator[Generated]:
    """Return every container that the generators of an object represent."""
    cluster = scope.data.get("openbao_cluster") or {}
    if cluster.get("enabled"):
        yield from _openbao(scope, cluster)
    for name, service in scope.get_map("node_services").items():
        yield from _service(scope, name, service)


def _openbao(scope: Scope, cluster: Mapping[str, Any]) -> Iterator[Generated]:
    prefix, base = cluster["name_prefix"], cluster["vm_id_base"]
    stores = cluster.get("root_disk_datastore_by_node") or {}
    for node, peers in cluster["placement"].items():
        for place, peer in enumerate(peers):
            if isinstance(peer, dict):
                vm_id = peer["vm_id"]
                octet = vm_id - base
                key = peer.get("hostname") or f"{prefix}{vm_id}"
            else:
                octet, vm_id = peer, base + peer
                key = f"{prefix}{peer:02d}"
            disk = dict(cluster["root_disk"])
            if node in stores:
                disk["datastore_id"] = stores[node]
            yield Generated(
                key=key,
                entry={
                    **cluster["container_defaults"],
                    "vm_id": vm_id,
                    "hostname": key,
                    "vlan": cluster["vlan"],
                    "node_name": node,
                    "root_disk": disk,
                    "ip_config": _make_fixed_address(scope, cluster["vlan"], octet),
                },
                path=("openbao_cluster", "placement", node, place),
                octet=octet,
            )


def _service(scope: Scope, name: str, service: Mapping[str, Any]) -> Iterator[Generated]:
    prefix = service.get("name_prefix") or f"{name}-"
    for node, place in service["per_node"].items():
        if not _takes_services(scope.nodes.get(node)):
            continue
        key = f"{prefix}{place['suffix']}"
        octet = place.get("host_octet")
        is_static = octet is not None and not service.get("dhcp")
        address = (
            {"ip_config": _make_fixed_address(scope, service["vlan"], octet)} if is_static else {"dhcp": True}
        )
        yield Generated(
            key=key,
            entry={
                **(service.get("container_defaults") or {}),
                "vm_id": place["vm_id"],
                "hostname": key,
                "vlan": service["vlan"],
                "node_name": node,
                **address,
            },
            path=("node_services", name, "per_node", node),
            octet=octet if is_static else None,
        )


def _takes_services(node: Mapping[str, Any] | None) -> bool:
    """Return whether a node gets its services; a node that is not there is reported by the checks."""
    if node is None:
        return False
    return node.get("commissioned") is not False and node.get("services_enabled") is not False


def _make_fixed_address(scope: Scope, vlan: str, octet: int) -> dict[str, str]:
    network = scope.networks.get(vlan)
    if network is None or not 0 <= octet < network.num_addresses:
        return {}
    return {"ipv4_address": f"{network[octet]}/{network.prefixlen}"}
