"""Interfaces of nodes, which are reloaded, and an SDN that is applied and then changed."""

from __future__ import annotations

from typing import Any

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

INTERFACES = """
resource "proxmox_network_linux_bond" "full" {
  node_name    = "pve1"
  name         = "bond0"
  slaves       = ["eno2", "eno3"]
  bond_mode    = "active-backup"
  bond_primary = "eno2"
  comment      = "two cards"
  mtu          = 1400
}
resource "proxmox_network_linux_bond" "hashed" {
  node_name             = "pve2"
  name                  = "bond1"
  slaves                = ["eno3"]
  bond_mode             = "802.3ad"
  bond_xmit_hash_policy = "layer2+3"
  autostart             = false
  address               = "10.12.0.1/24"
  address6              = "fd00:12::1/64"
  timeout_reload        = 50
}
resource "proxmox_network_linux_bond" "plain" {
  node_name = "pve2"
  name      = "bond2"
  slaves    = ["eno4"]
}
resource "proxmox_virtual_environment_network_linux_bridge" "plain" {
  node_name = "pve1"
  name      = "vmbr10"
}
resource "proxmox_network_linux_bridge" "full" {
  node_name  = "pve1"
  name       = "vmbr11"
  address    = "10.11.0.1/24"
  address6   = "fd00:11::1/64"
  autostart  = true
  comment    = "of the test"
  mtu        = 1300
  ports      = [proxmox_network_linux_bond.full.name]
  vlan_aware = true
}
resource "proxmox_network_linux_bridge" "ids" {
  node_name      = "pve2"
  name           = "vmbr12"
  vlan_aware     = true
  vids           = "2 10-20"
  timeout_reload = 50
}
resource "proxmox_network_linux_vlan" "tagged" {
  node_name = "pve1"
  name      = "eno1.30"
  comment   = "tagged"
}
resource "proxmox_virtual_environment_network_linux_vlan" "named" {
  node_name = "pve1"
  name      = "lab_vlan"
  interface = "eno1"
  vlan      = 31
  address   = "10.31.0.1/24"
}
"""
APPLIED = """
resource "proxmox_sdn_fabric_openfabric" "applied" {
  id             = "fabric"
  ip_prefix      = "10.94.0.0/24"
  hello_interval = 5
}
resource "proxmox_sdn_fabric_node_openfabric" "applied" {
  fabric_id       = proxmox_sdn_fabric_openfabric.applied.id
  node_id         = "pve1"
  interface_names = ["eno4"]
  ip              = "10.94.0.1"
}
resource "proxmox_sdn_controller_evpn" "applied" {
  id     = "control"
  asn    = 65000
  fabric = proxmox_sdn_fabric_openfabric.applied.id
}
resource "proxmox_sdn_zone_evpn" "applied" {
  id                = "evpn"
  controller        = proxmox_sdn_controller_evpn.applied.id
  vrf_vxlan         = 4000
  advertise_subnets = true
  exit_nodes        = ["pve1"]
  rt_import         = "65000:1"
}
resource "proxmox_sdn_zone_qinq" "applied" {
  id                    = "qinq"
  bridge                = "vmbr0"
  service_vlan          = 100
  service_vlan_protocol = "802.1ad"
}
resource "proxmox_sdn_zone_vxlan" "applied" {
  id    = "vxlan"
  peers = ["10.0.0.1"]
}
resource "proxmox_sdn_zone_simple" "applied" {
  id    = "simple"
  nodes = ["pve1"]
  mtu   = 1400
  dhcp  = "dnsmasq"
}
resource "proxmox_sdn_vnet" "applied" {
  id    = "net"
  zone  = proxmox_sdn_zone_simple.applied.id
  alias = "applied"
}
resource "proxmox_sdn_subnet" "applied" {
  vnet    = proxmox_sdn_vnet.applied.id
  cidr    = "10.50.0.0/24"
  gateway = "10.50.0.1"
  snat    = true
}
resource "proxmox_sdn_applier" "all" {
  depends_on = [
    proxmox_sdn_fabric_node_openfabric.applied, proxmox_sdn_zone_evpn.applied, proxmox_sdn_zone_qinq.applied,
    proxmox_sdn_zone_vxlan.applied, proxmox_sdn_subnet.applied,
  ]
}
resource "proxmox_virtual_environment_sdn_applier" "never" {
  on_create  = false
  on_destroy = false
}
data "proxmox_sdn_zone_simple" "applied" {
  id         = "simple"
  depends_on = [proxmox_sdn_applier.all, proxmox_sdn_zone_simple.applied]
}
data "proxmox_sdn_zone_evpn" "applied" {
  id         = "evpn"
  depends_on = [proxmox_sdn_applier.all, proxmox_sdn_zone_evpn.applied]
}
data "proxmox_sdn_vnet" "applied" {
  id         = "net"
  depends_on = [proxmox_sdn_applier.all, proxmox_sdn_vnet.applied]
}
output "applied" {
  value = [
    data.proxmox_sdn_zone_simple.applied, data.proxmox_sdn_zone_evpn.applied, data.proxmox_sdn_vnet.applied,
  ]
}
"""
UPDATE = {
    'slaves       = ["eno2", "eno3"]': 'slaves = ["eno2"]',
    'bond_mode    = "active-backup"\n  bond_primary = "eno2"': 'bond_mode = "balance-xor"',
    'comment      = "two cards"': "",
    'bond_xmit_hash_policy = "layer2+3"': "",
    'address6              = "fd00:12::1/64"': "",
    'comment    = "of the test"': 'comment    = ""',
    "mtu        = 1300": "",
    "vlan_aware     = true": "vlan_aware     = false",
    'vids           = "2 10-20"': "",
    'comment   = "tagged"': "mtu = 1300",
    "hello_interval = 5": "hello_interval = 6",
    'interface_names = ["eno4"]': 'interface_names = ["eno1"]',
    "asn    = 65000": "asn    = 65001",
    "advertise_subnets = true": "",
    'rt_import         = "65000:1"': "",
    "service_vlan          = 100": "service_vlan          = 101",
    '"802.1ad"': '"802.1q"',
    'peers = ["10.0.0.1"]': 'peers = ["10.0.0.1", "10.0.0.2"]',
    "mtu   = 1400": "mtu   = 1300",
    'alias = "applied"': "",
    'gateway = "10.50.0.1"': "",
}
BOND, BRIDGE, VLAN = (f"proxmox_network_linux_{kind}" for kind in ("bond", "bridge", "vlan"))
LONG = "proxmox_virtual_environment_"
CHANGED_INTERFACES = (f"{BOND}.full", f"{BOND}.hashed", f"{BRIDGE}.full", f"{BRIDGE}.ids", f"{VLAN}.tagged")
SDN = tuple(
    f"proxmox_sdn_{kind}.applied"
    for kind in (
        *("fabric_openfabric", "fabric_node_openfabric", "controller_evpn", "zone_evpn", "zone_qinq"),
        *("zone_vxlan", "zone_simple", "vnet", "subnet"),
    )
)


async def _drift(api: proxmox.Client) -> None:
    meddled: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("bond0", "pve1", {"type": "bond", "slaves": "eno2", "bond_mode": "balance-rr", "delete": "mtu"}),
        ("bond1", "pve2", {"type": "bond", "slaves": "eno3", "bond_mode": "802.3ad", "autostart": True}),
        ("vmbr11", "pve1", {"type": "bridge", "bridge_ports": "bond0", "cidr": "10.11.0.9/24"}),
        ("vmbr12", "pve2", {"type": "bridge", "bridge_vlan_aware": True, "bridge_vids": "2-5"}),
        ("eno1.30", "pve1", {"type": "vlan", "autostart": True, "comments": "by hand"}),
    )
    for name, node, changes in meddled:
        # It is only written, and not reloaded.
        await api.put(f"/nodes/{node}/network/{name}", changes)
    root = "/cluster/sdn"
    changed: dict[str, Any] = {"protocol": "openfabric", "hello_interval": 9, "csnp_interval": 9}
    await api.put(f"{root}/fabrics/fabric/fabric", changed)
    await api.put(f"{root}/fabrics/node/fabric/pve1", {"protocol": "openfabric", "delete": ["interfaces"]})
    await api.put(f"{root}/controllers/control", {"delete": "fabric", "peers": "10.0.0.9"})
    await api.put(f"{root}/zones/evpn", {"delete": "rt-import,advertise-subnets,exitnodes"})
    await api.put(f"{root}/zones/qinq", {"tag": 99})
    await api.put(f"{root}/zones/vxlan", {"peers": "10.0.0.9"})
    await api.put(f"{root}/zones/simple", {"delete": "nodes,dhcp"})
    await api.put(f"{root}/vnets/net", {"delete": "alias"})
    await api.put(f"{root}/vnets/net/subnets/simple-10.50.0.0-24", {"delete": "gateway"})


async def _remove(api: proxmox.Client) -> None:
    for node, name in (("pve2", "bond2"), ("pve1", "vmbr10"), ("pve1", "lab_vlan")):
        await api.delete(f"/nodes/{node}/network/{name}")
    # It stays in force until the next apply.
    await api.delete("/cluster/sdn/zones/qinq")


CASES = (
    Case(
        id="network",
        kinds=("network_linux_bond", "network_linux_bridge", "network_linux_vlan", "sdn_applier"),
        text=INTERFACES + APPLIED,
        update=UPDATE,
        updated=(*CHANGED_INTERFACES, *SDN),
        replace={
            '"bond2"': '"bond3"',
            '"vmbr10"': '"vmbr13"',
            '"lab_vlan"': '"lab_other"',
            "on_create  = false": "",
        },
        replaced=(
            *(f"{BOND}.plain", f"{LONG}network_linux_bridge.plain", f"{LONG}network_linux_vlan.named"),
            f"{LONG}sdn_applier.never",
        ),
        imports={
            f"{BOND}.full": "pve1:bond0",
            f"{BOND}.plain": "pve2:bond2",
            f"{BRIDGE}.full": "pve1:vmbr11",
            f"{LONG}network_linux_bridge.plain": "pve1:vmbr10",
            f"{VLAN}.tagged": "pve1:eno1.30",
            f"{LONG}network_linux_vlan.named": "pve1:lab_vlan",
        },
        drift=_drift,
        drifted=(*CHANGED_INTERFACES, *SDN),
        remove=_remove,
        removed=(
            *(f"{BOND}.plain", f"{LONG}network_linux_bridge.plain", f"{LONG}network_linux_vlan.named"),
            "proxmox_sdn_zone_qinq.applied",
        ),
        hidden=("/storage",),
        nothing={
            "sdn_applier update": "every attribute replaces it",
            "sdn_applier import": "an apply is an act, not an object",
            "sdn_applier drift": "it has nothing on the cluster",
            "sdn_applier gone": "it has nothing on the cluster",
        },
    ),
)
