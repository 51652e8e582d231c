"""Zones, networks, subnets, controllers and fabrics of the SDN, none of which is applied."""

from __future__ import annotations

import re

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

LONG, SHORT = "proxmox_virtual_environment_sdn_", "proxmox_sdn_"
FABRICS = """
resource "proxmox_sdn_fabric_openfabric" "full" {
  id             = "fabone"
  ip_prefix      = "10.90.0.0/24"
  ip6_prefix     = "fd90::/64"
  csnp_interval  = 30
  hello_interval = 5
}
resource "proxmox_virtual_environment_sdn_fabric_openfabric" "plain" {
  id         = "fabtwo"
  ip6_prefix = "fd91::/64"
}
resource "proxmox_virtual_environment_sdn_fabric_ospf" "full" {
  id        = "ospfone"
  area      = "0.0.0.1"
  ip_prefix = "10.92.0.0/24"
}
resource "proxmox_sdn_fabric_ospf" "number" {
  id        = "ospftwo"
  area      = "7"
  ip_prefix = "10.93.0.0/24"
}
resource "proxmox_sdn_fabric_node_openfabric" "full" {
  fabric_id       = proxmox_sdn_fabric_openfabric.full.id
  node_id         = "pve1"
  interface_names = ["eno4", "eno3"]
  ip              = "10.90.0.1"
  ip6             = "fd90::1"
}
resource "proxmox_virtual_environment_sdn_fabric_node_openfabric" "plain" {
  fabric_id       = proxmox_virtual_environment_sdn_fabric_openfabric.plain.id
  node_id         = "pve2"
  interface_names = []
  ip6             = "fd91::2"
}
resource "proxmox_virtual_environment_sdn_fabric_node_ospf" "full" {
  fabric_id       = proxmox_virtual_environment_sdn_fabric_ospf.full.id
  node_id         = "pve1"
  interface_names = ["eno2"]
  ip              = "10.92.0.1"
}
resource "proxmox_sdn_fabric_node_ospf" "number" {
  fabric_id       = proxmox_sdn_fabric_ospf.number.id
  node_id         = "pve2"
  interface_names = ["eno2", "eno3"]
  ip              = "10.93.0.2"
}
"""
ZONES = """
resource "proxmox_sdn_controller_evpn" "one" {
  id    = "control"
  asn   = 65000
  peers = ["10.0.0.2", "10.0.0.1"]
  # A controller that is to be on a fabric goes before it.
  depends_on = [proxmox_sdn_fabric_openfabric.full]
}
resource "proxmox_virtual_environment_sdn_zone_evpn" "full" {
  id                         = "zevpn"
  controller                 = proxmox_sdn_controller_evpn.one.id
  vrf_vxlan                  = 4000
  nodes                      = ["pve1", "pve2"]
  exit_nodes                 = ["pve2", "pve1"]
  primary_exit_node          = "pve1"
  exit_nodes_local_routing   = true
  advertise_subnets          = true
  disable_arp_nd_suppression = true
  rt_import                  = "65000:65000"
  mtu                        = 1450
}
resource "proxmox_sdn_zone_evpn" "plain" {
  id         = "zevplain"
  controller = proxmox_sdn_controller_evpn.one.id
  vrf_vxlan  = 4001
}
resource "proxmox_sdn_zone_qinq" "full" {
  id                    = "zqinq"
  bridge                = "vmbr0"
  service_vlan          = 100
  service_vlan_protocol = "802.1ad"
  nodes                 = ["pve1"]
  mtu                   = 1496
}
resource "proxmox_virtual_environment_sdn_zone_qinq" "plain" {
  id           = "zqplain"
  bridge       = "vmbr0"
  service_vlan = 101
}
resource "proxmox_sdn_zone_simple" "full" {
  id    = "zsimple"
  nodes = ["pve1", "pve2"]
  mtu   = 1400
  dhcp  = "dnsmasq"
  ipam  = "pve"
}
resource "proxmox_virtual_environment_sdn_zone_simple" "plain" { id = "zsplain" }
resource "proxmox_virtual_environment_sdn_zone_vlan" "full" {
  id     = "zvlan"
  bridge = "vmbr0"
  nodes  = ["pve1"]
}
resource "proxmox_sdn_zone_vxlan" "full" {
  id    = "zvxlan"
  peers = ["10.0.0.2", "10.0.0.1"]
  nodes = ["pve1"]
}
resource "proxmox_sdn_vnet" "full" {
  id            = "vfull"
  zone          = proxmox_sdn_zone_simple.full.id
  alias         = "first net"
  isolate_ports = true
}
resource "proxmox_virtual_environment_sdn_vnet" "tagged" {
  id         = "vtagged"
  zone       = proxmox_virtual_environment_sdn_zone_vlan.full.id
  tag        = 40
  vlan_aware = true
}
resource "proxmox_sdn_subnet" "full" {
  vnet            = proxmox_sdn_vnet.full.id
  cidr            = "10.40.0.0/24"
  gateway         = "10.40.0.1"
  snat            = true
  dhcp_dns_server = "10.40.0.53"
  dhcp_range = {
    start_address = "10.40.0.100"
    end_address   = "10.40.0.200"
  }
}
resource "proxmox_virtual_environment_sdn_subnet" "plain" {
  vnet = proxmox_sdn_vnet.full.id
  cidr = "10.41.0.0/24"
}
"""
# Each data source, what names its object there, and the resource that it waits for.
SOURCES = {
    "sdn_controller_evpn": ('id = "control"', "proxmox_sdn_controller_evpn.one"),
    "sdn_fabric_openfabric": ('id = "fabone"', "proxmox_sdn_fabric_openfabric.full"),
    "sdn_fabric_ospf": ('id = "ospfone"', f"{LONG}fabric_ospf.full"),
    "sdn_fabric_node_openfabric": (
        'fabric_id = "fabtwo"\n node_id = "pve2"',
        f"{LONG}fabric_node_openfabric.plain",
    ),
    "sdn_fabric_node_ospf": ('fabric_id = "ospftwo"\n node_id = "pve2"', f"{SHORT}fabric_node_ospf.number"),
    "sdn_subnet": ('vnet = "vfull"\n cidr = "10.40.0.0/24"', "proxmox_sdn_subnet.full"),
    "sdn_vnet": ('id = "vtagged"', f"{LONG}vnet.tagged"),
    "sdn_vnets": ("", f"{LONG}vnet.tagged, {SHORT}vnet.full"),
    "sdn_zone_evpn": ('id = "zevpn"', f"{LONG}zone_evpn.full"),
    "sdn_zone_qinq": ('id = "zqinq"', f"{SHORT}zone_qinq.full"),
    "sdn_zone_simple": ('id = "zsimple"', f"{SHORT}zone_simple.full"),
    "sdn_zone_vlan": ('id = "zvlan"', f"{LONG}zone_vlan.full"),
    "sdn_zone_vxlan": ('id = "zvxlan"', f"{SHORT}zone_vxlan.full"),
}
DATA = "".join(
    f'data "proxmox_{kind}" "one" {{\n {named}\n depends_on = [{after}]\n}}\n'
    f'output "{kind}" {{ value = data.proxmox_{kind}.one }}\n'
    for kind, (named, after) in SOURCES.items()
)
ADDRESSES = [f"{kind}.{name}" for kind, name in re.findall(r'resource "(\S+)" "(\S+)"', FABRICS + ZONES)]
LISTS = f"""
data "proxmox_sdn_zones" "all" {{
  depends_on = [{", ".join(one for one in ADDRESSES if "_zone_" in one)}]
}}
data "proxmox_virtual_environment_sdn_zones" "qinq" {{
  type       = "qinq"
  depends_on = [{", ".join(one for one in ADDRESSES if "_zone_" in one)}]
}}
data "proxmox_virtual_environment_sdn_zone_evpn" "plain" {{
  id         = "zevplain"
  depends_on = [proxmox_sdn_zone_evpn.plain]
}}
output "lists" {{
  value = [
    data.proxmox_sdn_zones.all, data.proxmox_virtual_environment_sdn_zones.qinq,
    data.proxmox_virtual_environment_sdn_zone_evpn.plain,
  ]
}}
"""
UPDATE = {
    "csnp_interval  = 30": "",
    "hello_interval = 5": "hello_interval = 7",
    'area      = "0.0.0.1"': 'area = "0.0.0.2"',
    'interface_names = ["eno4", "eno3"]': 'interface_names = ["eno4"]',
    'interface_names = ["eno2"]': 'interface_names = ["eno1"]',
    "asn   = 65000": "asn = 65001",
    'peers = ["10.0.0.2", "10.0.0.1"]\n  #': "fabric = proxmox_sdn_fabric_openfabric.full.id\n  #",
    "vrf_vxlan                  = 4000": "vrf_vxlan = 4002",
    'exit_nodes                 = ["pve2", "pve1"]': 'exit_nodes = ["pve2"]',
    'primary_exit_node          = "pve1"': "",
    "exit_nodes_local_routing   = true": "",
    "advertise_subnets          = true": "advertise_subnets = false",
    'rt_import                  = "65000:65000"': "",
    "service_vlan          = 100": "service_vlan = 102",
    'service_vlan_protocol = "802.1ad"': "",
    'nodes = ["pve1", "pve2"]\n  mtu   = 1400\n  dhcp  = "dnsmasq"': 'nodes = ["pve2"]\n mtu = 1300',
    'bridge = "vmbr0"\n  nodes  = ["pve1"]': 'bridge = "vmbr0"\n nodes = ["pve1", "pve2"]',
    'peers = ["10.0.0.2", "10.0.0.1"]\n  nodes': 'peers = ["10.0.0.3"]\n  nodes',
    'alias         = "first net"': "",
    "isolate_ports = true": "isolate_ports = false",
    "tag        = 40": "tag = 41",
    "snat            = true": "",
    'dhcp_dns_server = "10.40.0.53"': 'dhcp_dns_server = "10.40.0.54"',
}
UPDATED = (
    f"{SHORT}fabric_openfabric.full",
    f"{LONG}fabric_ospf.full",
    f"{SHORT}fabric_node_openfabric.full",
    f"{LONG}fabric_node_ospf.full",
    f"{SHORT}controller_evpn.one",
    f"{LONG}zone_evpn.full",
    f"{SHORT}zone_qinq.full",
    f"{SHORT}zone_simple.full",
    f"{LONG}zone_vlan.full",
    f"{SHORT}zone_vxlan.full",
    f"{SHORT}vnet.full",
    f"{LONG}vnet.tagged",
    f"{SHORT}subnet.full",
)
NAMES = (
    *("fabone", "fabtwo", "ospfone", "ospftwo", "control", "zevpn", "zevplain", "zqinq", "zqplain"),
    *("zsimple", "zsplain", "zvlan", "zvxlan", "vfull", "vtagged"),
)
IMPORTS = {
    f"{SHORT}fabric_openfabric.full": "fabone",
    f"{LONG}fabric_ospf.full": "ospfone",
    f"{SHORT}fabric_node_openfabric.full": "fabone/pve1",
    f"{LONG}fabric_node_openfabric.plain": "fabtwo/pve2",
    f"{LONG}fabric_node_ospf.full": "ospfone/pve1",
    f"{SHORT}controller_evpn.one": "control",
    f"{LONG}zone_evpn.full": "zevpn",
    f"{SHORT}zone_evpn.plain": "zevplain",
    f"{SHORT}zone_qinq.full": "zqinq",
    f"{SHORT}zone_simple.full": "zsimple",
    f"{LONG}zone_vlan.full": "zvlan",
    f"{SHORT}zone_vxlan.full": "zvxlan",
    f"{SHORT}vnet.full": "vfull",
    f"{SHORT}subnet.full": "vfull/zsimple-10.40.0.0-24",
}


async def _drift(api: proxmox.Client) -> None:
    root = "/cluster/sdn"
    fabrics, nodes = f"{root}/fabrics/fabric", f"{root}/fabrics/node"
    await api.put(f"{fabrics}/fabone", {"protocol": "openfabric", "delete": ["hello_interval"]})
    await api.put(f"{fabrics}/ospfone", {"protocol": "ospf", "area": "9"})
    await api.put(f"{nodes}/fabone/pve1", {"protocol": "openfabric", "interfaces": ["name=eno4"]})
    # What is set for an interface beside its name is somebody's change as well.
    multiplied = ["name=eno2,ip=10.92.1.1/31"]
    await api.put(f"{nodes}/ospfone/pve1", {"protocol": "ospf", "interfaces": multiplied})
    await api.put(f"{root}/controllers/control", {"asn": 65009, "peers": "10.0.0.9"})
    await api.put(f"{root}/zones/zevpn", {"advertise-subnets": 0, "delete": "rt-import,exitnodes-primary"})
    await api.put(f"{root}/zones/zqinq", {"tag": 200, "vlan-protocol": "802.1q"})
    await api.put(f"{root}/zones/zsimple", {"delete": "nodes,dhcp"})
    await api.put(f"{root}/zones/zvlan", {"nodes": "pve2"})
    await api.put(f"{root}/zones/zvxlan", {"peers": "10.0.0.9"})
    await api.put(f"{root}/vnets/vfull", {"alias": "by hand"})
    await api.put(f"{root}/vnets/vfull/subnets/zsimple-10.40.0.0-24", {"gateway": "10.40.0.9"})


async def _remove(api: proxmox.Client) -> None:
    root = "/cluster/sdn"
    for subnet in ("10.40.0.0-24", "10.41.0.0-24"):
        await api.delete(f"{root}/vnets/vfull/subnets/zsimple-{subnet}")
    for vnet in ("vfull", "vtagged"):
        await api.delete(f"{root}/vnets/{vnet}")
    for zone in NAMES:
        if zone.startswith("z"):
            await api.delete(f"{root}/zones/{zone}")
    await api.delete(f"{root}/controllers/control")
    await api.delete(f"{root}/fabrics/node/ospfone/pve1")
    for fabric in ("fabone", "fabtwo", "ospfone", "ospftwo"):
        await api.delete(f"{root}/fabrics/fabric/{fabric}")


CASES = (
    Case(
        id="sdn",
        kinds=(
            *("sdn_fabric_openfabric", "sdn_fabric_ospf"),
            *("sdn_fabric_node_openfabric", "sdn_fabric_node_ospf", "sdn_controller_evpn"),
            *(f"sdn_zone_{kind}" for kind in ("evpn", "qinq", "simple", "vlan", "vxlan")),
            *("sdn_vnet", "sdn_subnet"),
        ),
        sources=(*SOURCES, "sdn_zones"),
        text=FABRICS + ZONES + DATA + LISTS,
        update=UPDATE,
        updated=UPDATED,
        # All of them get other names, the data sources included.
        replace={f'"{name}"': f'"{name[:-1]}9"' for name in NAMES},
        replaced=ADDRESSES,
        imports=IMPORTS,
        drift=_drift,
        drifted=[one for one in UPDATED if one != f"{LONG}vnet.tagged"],
        remove=_remove,
        removed=ADDRESSES,
        hidden=("/nodes",),
    ),
)
