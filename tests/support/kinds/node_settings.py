"""Name servers, hosts file, time zone and notes of nodes."""

from __future__ import annotations

from tests.support.kinds import cluster_settings, repositories
from tests.support.parity import Case, joined

from stackyard.clients import proxmox

__all__ = ["CASES"]

TEXT = """
resource "proxmox_virtual_environment_dns" "one" {
  node_name = "pve1"
  domain    = "one.example.com"
  servers   = ["10.0.0.1", "10.0.0.2"]
}
resource "proxmox_virtual_environment_dns" "plain" {
  node_name = "pve2"
  domain    = "two.example.com"
}
resource "proxmox_virtual_environment_hosts" "one" {
  node_name = "pve1"
  entry {
    address   = "127.0.0.1"
    hostnames = ["localhost", "localhost.localdomain"]
  }
  entry {
    address   = "10.0.0.11"
    hostnames = ["pve1"]
  }
}
resource "proxmox_virtual_environment_time" "one" {
  node_name = "pve1"
  time_zone = "Europe/Berlin"
}
resource "proxmox_node_config" "one" {
  node_name   = "pve1"
  description = "  the first\\nof two"
}
resource "proxmox_node_config" "plain" {
  node_name  = "pve2"
  depends_on = [proxmox_node_config.one]
}
data "proxmox_virtual_environment_dns" "one" {
  node_name  = "pve1"
  depends_on = [proxmox_virtual_environment_dns.one]
}
data "proxmox_virtual_environment_hosts" "one" {
  node_name  = "pve1"
  depends_on = [proxmox_virtual_environment_hosts.one]
}
data "proxmox_virtual_environment_time" "one" {
  node_name  = "pve1"
  depends_on = [proxmox_virtual_environment_time.one]
}
data "proxmox_node_config" "one" {
  node_name  = "pve1"
  depends_on = [proxmox_node_config.one]
}
data "proxmox_node_config" "plain" {
  node_name  = "pve2"
  depends_on = [proxmox_node_config.plain]
}
output "node" {
  value = [
    data.proxmox_virtual_environment_dns.one, data.proxmox_virtual_environment_hosts.one,
    data.proxmox_virtual_environment_time.one.time_zone, data.proxmox_virtual_environment_time.one.id,
    data.proxmox_node_config.one, data.proxmox_node_config.plain,
  ]
}
"""
PREFIX = "proxmox_virtual_environment_"
SET = (f"{PREFIX}dns.one", f"{PREFIX}hosts.one", f"{PREFIX}time.one", "proxmox_node_config.one")


async def _drift(api: proxmox.Client) -> None:
    await api.put("/nodes/pve1/dns", {"search": "by.hand", "dns1": "10.0.0.9"})
    await api.post("/nodes/pve1/hosts", {"data": "# by hand\n 10.0.0.8 not\n127.0.0.1\tlocalhost  other\n"})
    await api.put("/nodes/pve1/time", {"timezone": "UTC"})
    await api.put("/nodes/pve1/config", {"description": "by hand"})


NODES = Case(
    id="node-settings",
    kinds=("dns", "hosts", "node_config", "time"),
    sources=("dns", "hosts", "node_config", "time"),
    text=TEXT,
    update={
        '"one.example.com"': '"other.example.com"',
        'servers   = ["10.0.0.1", "10.0.0.2"]': "",
        'hostnames = ["pve1"]': 'hostnames = ["pve1", "pve1.example.com"]',
        '"Europe/Berlin"': '"Etc/UTC"',
        'description = "  the first\\nof two"': "",
    },
    updated=SET,
    replace={
        'node_name = "pve1"\n  domain': 'node_name = "NEXT"\n  domain',
        'node_name = "pve2"\n  domain': 'node_name = "pve1"\n  domain',
        'node_name = "NEXT"': 'node_name = "pve2"',
        '"plain" {\n  node_name  = "pve2"\n  depends_on = [proxmox_node_config.one]': '"plain" {\n'
        '  node_name = "pve1"\n  depends_on = [proxmox_node_config.one]',
        '  node_name   = "pve1"\n': '  node_name   = "pve2"\n',
    },
    replaced=(
        f"{PREFIX}dns.one",
        f"{PREFIX}dns.plain",
        "proxmox_node_config.one",
        "proxmox_node_config.plain",
    ),
    imports=dict.fromkeys(SET, "pve1"),
    drift=_drift,
    drifted=SET,
    hidden=("/access",),
    nothing={
        **{f"{kind} gone": "it is always there" for kind in ("dns", "hosts", "node_config", "time")},
        **{f"{kind} replace": "no attribute replaces it" for kind in ("hosts", "time")},
    },
)
CASES = (joined("settings", NODES, repositories.CASE, cluster_settings.CASE),)
