"""The machines of a lab as nodes of a cluster, as the steps of a cold boot see them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from tests.support.lab import LabClient
from tests.support.talos import Cluster

from pvelab.talos.machine import TalosMachine
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.clients.talos import TalosCredentials
from stackyard.sources.cluster.model import ClusterNode, TalosImage

__all__ = ["Reports", "access_to", "add_fault", "node_of", "remove_fault"]


class Reports:
    """What a step says while it waits."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)


def node_of(machine: TalosMachine, *, is_controller: bool = True, **changes: Any) -> ClusterNode:
    """Return what a cluster's file says of a machine."""
    assert machine.address is not None
    card = str(machine.guest["config"]["net0"])
    fields: dict[str, Any] = {
        "name": machine.hostname,
        "address": IPv4Address(machine.address[0]),
        "is_controller": is_controller,
        "disk": "/dev/sda",
        "mac_addr": card.partition("=")[2].partition(",")[0].lower(),
        "image": TalosImage(schematic_id="0" * 64, version="1.12.1"),
        **changes,
    }
    return ClusterNode(**fields)


def access_to(cluster: Cluster, **changes: Any) -> TalosAccess:
    """Return the access of an administrator of a cluster."""
    pair = cluster.client()
    credentials = TalosCredentials(
        ca=cluster.authority.certificate_pem, certificate=pair.certificate_pem, key=pair.key_pem
    )
    return TalosAccess(credentials=credentials, **{"timeout_s": 5.0, **changes})


async def add_fault(api: LabClient, how: str, vmid: int, **fields: object) -> None:
    """Let a machine of the lab go wrong in one way."""
    body = {"kind": "talos", "name": f"{how}-{vmid}", "how": how, "vmid": vmid, **fields}
    reply = await api.raw("POST", "/faults", base="/_lab", json=body)
    assert reply.status == 200, reply.body


async def remove_fault(api: LabClient, how: str, vmid: int) -> None:
    """End a fault."""
    assert (await api.raw("DELETE", f"/faults/{how}-{vmid}", base="/_lab")).status == 200
