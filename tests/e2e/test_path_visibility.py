"""What a token may not look at is unknown: files, pools, networks and high availability, not guests alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.lab import proxmoxer_client

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.guard import Cluster
from stackyard.path.known_state import KnownState
from stackyard.path.visibility import NotVisibleError, require_visible
from stackyard.state.inside import Instance

EMPTY = Cluster(nodes=(), storages=(), guests=())
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "proxmox_virtual_environment_pool": ({"pool_id": "dev"}, "Pool.Audit on /pool/dev"),
    "proxmox_download_file": (
        {"file_name": "d.qcow2", "datastore_id": "local", "content_type": "import"},
        "Datastore.Audit or Datastore.AllocateSpace on /storage/local",
    ),
    "proxmox_virtual_environment_file": (
        {"file_name": "u.yaml", "datastore_id": "local", "content_type": "snippets"},
        "Datastore.Allocate on /storage/local",
    ),
    "proxmox_network_linux_bridge": ({"name": "vmbr1", "node_name": "pve1"}, "Sys.Audit on /nodes/pve1"),
    "proxmox_sdn_zone_simple": ({"id": "z1"}, "SDN.Audit or SDN.Allocate on /sdn/zones/z1"),
    "proxmox_sdn_vnet": ({"id": "v1", "zone": "z1"}, "SDN.Audit or SDN.Allocate on /sdn/zones/z1/v1"),
    "proxmox_sdn_subnet": (
        {"id": "z1-10.0.0.0-24", "vnet": "v1", "cidr": "10.0.0.0/24"},
        "SDN.Audit or SDN.Allocate on /sdn/zones/z1/v1",
    ),
    "proxmox_haresource": ({"resource_id": "vm:100"}, "Sys.Audit on /"),
}


def known(kind: str, values: dict[str, Any]) -> KnownState:
    address = f"{kind}.it"
    instance = Instance(address=address, mode="managed", type=kind, attributes=values)
    return KnownState(instances={address: instance})


def look(running: lab.Running, token: str, state: KnownState) -> None:
    async def ask() -> None:
        connection = proxmox.Connection(
            endpoint=running.url,
            credentials=proxmox.Token(text=token),
            trust=proxmox.Trust(fingerprint=running.fingerprint),
        )
        async with proxmox.Client(connection) as client:
            await require_visible(client, state, EMPTY)

    asyncio.run(ask())


def test_each_kind_of_resource_needs_the_privilege_that_shows_it() -> None:
    with lab.running(nodes=("pve1",), ssh_port=None) as running:
        api = proxmoxer_client(running)
        api.access.users.post(userid="small@pve")
        made = api.access.users("small@pve").token("ci").post(privsep=0)
        token = f"small@pve!ci={made['value']}"
        for kind, (values, privilege) in KINDS.items():
            with pytest.raises(NotVisibleError) as caught:
                look(running, token, known(kind, values))
            (finding,) = caught.value.diagnostics
            assert finding.kind.code == "E-PLAN-MAY-NOT-LOOK"
            assert privilege in finding.detail
            look(running, running.api_token, known(kind, values))
