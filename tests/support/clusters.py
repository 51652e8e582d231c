"""Clusters in the shape of the public samples, with values of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["AGENT_ID", "CLUSTER", "NODES", "PROXMOX", "SAMPLE", "node", "write_cluster"]

AGENT_ID = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

CLUSTER: dict[str, Any] = {
    "node_cidr": "192.0.2.0/24",
    "cluster_api_addr": "192.0.2.10",
    "proxmox_api_url": "https://pve.example.com:8006/api2/json",
    "proxmox_node": "pve",
}


def node(number: int, **more: Any) -> dict[str, Any]:
    """Return a node; a controller for the first three."""
    values = {
        "name": f"k8s-{number}",
        "address": f"192.0.2.{20 + number}",
        "controller": number <= 3,
        "disk": "/dev/sda",
        "mac_addr": f"bc:24:11:00:00:{number:02x}",
        "schematic_id": AGENT_ID,
    }
    return {key: value for key, value in {**values, **more}.items() if value is not None}


NODES = [node(1), node(2), node(3), node(4)]


def write_cluster(folder: Path, nodes: list[dict[str, Any]] | None = None, **more: Any) -> Path:
    """Write cluster.yaml and nodes.yaml; a field that is None is left out."""
    values = {key: value for key, value in {**CLUSTER, **more}.items() if value is not None}
    (folder / "cluster.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    text = yaml.safe_dump({"nodes": NODES if nodes is None else nodes}, sort_keys=False)
    (folder / "nodes.yaml").write_text(text)
    return folder


# In the shape of the public sample: empty texts are fields that were not filled in.
SAMPLE = f"""\
[network]
node_cidr = "192.0.2.0/24"
default_gateway = ""
vlan_tag = ""

[kubernetes.api]
addr = "192.0.2.10"

[gateways]
internal = "192.0.2.11"
dns = "192.0.2.12"
external = "192.0.2.13"

[repository]
url = "https://git.example.com/home/ops.git"
known_hosts = ""

[domain]
name = "example.com"

[dns]
token = "not-a-real-token"

[cilium]
[cilium.bgp]
router_addr = ""

[talos]
schematic_id = "{AGENT_ID}"

[[nodes]]
name = "k8s-1"
address = "192.0.2.21"
controller = true
disk = "/dev/sda"
mac_addr = "bc:24:11:00:00:01"
"""
PROXMOX = """
[proxmox]
api_url = "https://pve.example.com:8006/api2/json"
node = "pve"
vm_defaults = { cores = 2 }
"""
