"""The firewall of the cluster, a node, a VM and a container."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

PREFIX = "proxmox_virtual_environment_"
FIREWALL = f"{PREFIX}firewall_"
GROUP = f"{PREFIX}cluster_firewall_security_group"
# Proxmox has a firewall for the number of a guest, whether there is such a guest or not.
TEXT = """
resource "proxmox_virtual_environment_cluster_firewall" "all" {
  enabled        = true
  ebtables       = true
  forward_policy = "DROP"
  log_ratelimit {
    burst = 10
    rate  = "5/minute"
  }
}
resource "proxmox_node_firewall" "full" {
  node_name                            = "pve1"
  enabled                              = false
  log_level_in                         = "info"
  log_level_out                        = "err"
  log_level_forward                    = "debug"
  ndp                                  = false
  nf_conntrack_max                     = 65536
  nf_conntrack_tcp_timeout_established = 7875
  nftables                             = true
  nosmurfs                             = false
  smurf_log_level                      = "alert"
  tcp_flags_log_level                  = "warning"
  # So that the two can change places.
  depends_on = [proxmox_virtual_environment_node_firewall.plain]
}
resource "proxmox_virtual_environment_node_firewall" "plain" { node_name = "pve2" }

resource "proxmox_virtual_environment_firewall_alias" "office" {
  name    = "Office"
  cidr    = "192.168.10.0/24"
  comment = "the office"
}
resource "proxmox_virtual_environment_firewall_alias" "vm" {
  node_name = "pve1"
  vm_id     = 4300
  name      = "backend"
  cidr      = "10.0.0.7"
}
resource "proxmox_virtual_environment_firewall_alias" "container" {
  node_name    = "pve1"
  container_id = 4301
  name         = "backend"
  cidr         = "fd00::7"
}

resource "proxmox_virtual_environment_firewall_ipset" "trusted" {
  name    = "trusted"
  comment = "who may come in"
  cidr { name = "192.168.0.0/16" }
  cidr {
    name    = "10.1.2.3"
    comment = "a single host"
  }
  cidr {
    name    = "192.168.66.0/24"
    nomatch = true
  }
  cidr { name = proxmox_virtual_environment_firewall_alias.office.name }
}
resource "proxmox_virtual_environment_firewall_ipset" "empty" { name = "nobody" }
resource "proxmox_virtual_environment_firewall_ipset" "vm" {
  node_name = "pve1"
  vm_id     = 4300
  name      = "peers"
  cidr { name = "guest/${proxmox_virtual_environment_firewall_alias.vm.name}" }
}
resource "proxmox_virtual_environment_firewall_ipset" "container" {
  node_name    = "pve1"
  container_id = 4301
  name         = "peers"
  cidr { name = "10.9.0.0/16" }
}

resource "proxmox_virtual_environment_firewall_options" "vm" {
  node_name     = "pve1"
  vm_id         = 4300
  dhcp          = true
  enabled       = true
  input_policy  = "REJECT"
  ipfilter      = true
  log_level_in  = "info"
  log_level_out = "err"
  macfilter     = false
  ndp           = true
  output_policy = "DROP"
  radv          = false
}
resource "proxmox_virtual_environment_firewall_options" "container" {
  node_name    = "pve1"
  container_id = 4301
}

resource "proxmox_virtual_environment_cluster_firewall_security_group" "web" {
  name    = "web"
  comment = "web servers"
  rule {
    type    = "in"
    action  = "ACCEPT"
    comment = "HTTP"
    dport   = "80"
    proto   = "tcp"
    log     = "info"
  }
  rule {
    type    = "in"
    action  = "DROP"
    dport   = "8000:8100"
    proto   = "tcp"
    source  = "+${proxmox_virtual_environment_firewall_ipset.trusted.name}"
    enabled = false
  }
  rule {
    type   = "out"
    action = "ACCEPT"
    macro  = "DNS"
    dest   = proxmox_virtual_environment_firewall_alias.office.name
  }
}
resource "proxmox_virtual_environment_cluster_firewall_security_group" "empty" { name = "empty" }

resource "proxmox_virtual_environment_firewall_rules" "cluster" {
  rule {
    type    = "in"
    action  = "ACCEPT"
    macro   = "SSH"
    iface   = "vmbr0"
    source  = "+trusted"
    comment = "from those whom we trust"
  }
  rule {
    type   = "in"
    action = "ACCEPT"
    proto  = "tcp"
    dport  = "8006"
  }
  rule { security_group = proxmox_virtual_environment_cluster_firewall_security_group.web.name }
  rule {
    type   = "forward"
    action = "DROP"
    dest   = "10.0.0.0-10.0.0.9"
    log    = "alert"
  }
  depends_on = [proxmox_virtual_environment_firewall_ipset.trusted]
}
resource "proxmox_virtual_environment_firewall_rules" "node" {
  node_name = "pve1"
  rule {
    type   = "in"
    action = "REJECT"
    proto  = "udp"
    sport  = "53"
  }
}
resource "proxmox_virtual_environment_firewall_rules" "vm" {
  node_name = "pve1"
  vm_id     = 4300
  rule {
    type    = "in"
    action  = "ACCEPT"
    comment = "one"
    source  = "guest/${proxmox_virtual_environment_firewall_alias.vm.name}"
  }
  rule {
    type    = "in"
    action  = "ACCEPT"
    comment = "two"
    source  = "+${proxmox_virtual_environment_firewall_ipset.vm.name}"
  }
  rule {
    security_group = proxmox_virtual_environment_cluster_firewall_security_group.web.name
    comment        = "three"
    iface          = "net0"
  }
  rule {
    type    = "out"
    action  = "DROP"
    comment = "four"
    enabled = false
  }
}
resource "proxmox_virtual_environment_firewall_rules" "container" {
  node_name    = "pve1"
  container_id = 4301
  rule {
    type   = "in"
    action = "ACCEPT"
    macro  = "Ping"
    source = "+${proxmox_virtual_environment_firewall_ipset.container.name}"
  }
  rule {
    type   = "in"
    action = "DROP"
  }
}
resource "proxmox_virtual_environment_firewall_rules" "none" { node_name = "pve2" }
"""

NEW_RULE = 'rule {{\n    type   = "{}"\n    action = "{}"\n    proto  = "{}"\n  }}'
UPDATE = {
    'forward_policy = "DROP"': "",
    "burst = 10": "",
    'log_level_in                         = "info"': "",
    "nf_conntrack_max                     = 65536": "nf_conntrack_max = 40000",
    "nosmurfs                             = false": "",
    # A name, an address, a comment.
    'name    = "Office"': 'name    = "Branch"',
    'cidr      = "10.0.0.7"': 'cidr      = "10.0.0.8"\n  comment = "moved"',
    'comment = "who may come in"': "",
    'name    = "10.1.2.3"\n    comment = "a single host"': 'name    = "10.1.2.4"',
    '{ name = "nobody" }': '{ name = "everybody" }',
    "  dhcp          = true\n": "",
    'input_policy  = "REJECT"': 'input_policy  = "ACCEPT"',
    "  radv          = false\n": "",
    # Rules change, some come between and behind the others, and some go.
    'comment = "web servers"': "",
    'comment = "HTTP"': "",
    'dport   = "80"': 'dport   = "80,443"',
    'log     = "info"': "",
    'dport  = "8006"\n  }': f'dport  = "8006"\n  }}\n  {NEW_RULE.format("in", "DROP", "icmp")}',
    'log    = "alert"': "",
    'comment = "one"': "",
    'comment = "four"\n    enabled = false': 'comment = "four"',
    '  rule {\n    type   = "in"\n    action = "DROP"\n  }\n': "",
    '"none" { node_name = "pve2" }': '"none" {\n  node_name = "pve2"\n  '
    f"{NEW_RULE.format('out', 'ACCEPT', 'udp')}\n}}",
}
UPDATED = (
    f"{PREFIX}cluster_firewall.all",
    "proxmox_node_firewall.full",
    f"{FIREWALL}alias.office",
    f"{FIREWALL}alias.vm",
    f"{FIREWALL}ipset.trusted",
    f"{FIREWALL}ipset.empty",
    f"{FIREWALL}options.vm",
    f"{GROUP}.web",
    f"{FIREWALL}rules.cluster",
    f"{FIREWALL}rules.vm",
    f"{FIREWALL}rules.container",
    f"{FIREWALL}rules.none",
)
REPLACE = {
    'node_name = "pve2" }\n\n': 'node_name = "pve1" }\n\n',
    'node_name                            = "pve1"': 'node_name = "pve2"',
    "container_id = 4301": "container_id = 4302",
}
REPLACED = (
    "proxmox_node_firewall.full",
    f"{PREFIX}node_firewall.plain",
    f"{FIREWALL}alias.container",
    f"{FIREWALL}ipset.container",
    f"{FIREWALL}options.container",
    f"{FIREWALL}rules.container",
)
CLUSTER, VM, CONTAINER = (
    "/cluster/firewall",
    "/nodes/pve1/qemu/4300/firewall",
    "/nodes/pve1/lxc/4301/firewall",
)


async def _drift(api: proxmox.Client) -> None:
    await api.put(f"{CLUSTER}/options", {"policy_in": "ACCEPT", "delete": "policy_forward"})
    await api.put("/nodes/pve1/firewall/options", {"log_level_in": "crit", "delete": "nf_conntrack_max"})
    await api.put(f"{VM}/options", {"delete": "policy_in", "dhcp": 0})
    await api.put(f"{CLUSTER}/aliases/office", {"cidr": "192.168.11.0/24"})
    await api.delete(f"{CLUSTER}/ipset/trusted/10.1.2.3")
    await api.put(f"{CLUSTER}/ipset/trusted/{proxmox.quote('192.168.66.0/24')}", {"comment": "by hand"})
    await api.post(f"{CONTAINER}/ipset/peers", {"cidr": "10.8.0.0/16"})
    # Of the rules of the group one is removed, of those of the VM two change places, one is another now, and
    # one has come to the rules of the node.
    await api.delete(f"{CLUSTER}/groups/web/1")
    await api.put(f"{VM}/rules/0", {"moveto": 2})
    await api.put(f"{VM}/rules/3", {"enable": 1, "action": "REJECT"})
    await api.post("/nodes/pve1/firewall/rules", {"type": "in", "action": "ACCEPT", "enable": 1})
    # None of the rules of the container is left.
    await api.delete(f"{CONTAINER}/rules/1")
    await api.delete(f"{CONTAINER}/rules/0")


async def _remove(api: proxmox.Client) -> None:
    await api.delete(f"{CLUSTER}/aliases/office")
    await api.delete(f"{VM}/aliases/backend")
    await api.delete(f"{CLUSTER}/ipset/trusted", {"force": True})
    await api.delete(f"{CONTAINER}/ipset/peers", {"force": True})
    for _ in range(3):
        await api.delete(f"{CLUSTER}/groups/web/0")
    await api.delete(f"{CLUSTER}/groups/web")


_ALWAYS = "it is always there; what is unset or removed is a change of it"
_NAMED = "another name is a change in place"
CASES = (
    Case(
        id="firewall",
        kinds=(
            "cluster_firewall",
            "cluster_firewall_security_group",
            "firewall_alias",
            "firewall_ipset",
            "firewall_options",
            "firewall_rules",
            "node_firewall",
        ),
        text=TEXT,
        update=UPDATE,
        updated=UPDATED,
        replace=REPLACE,
        replaced=REPLACED,
        imports={
            f"{PREFIX}cluster_firewall.all": "cluster-firewall",
            "proxmox_node_firewall.full": "pve1",
            f"{PREFIX}node_firewall.plain": "pve2",
            f"{GROUP}.web": "web",
            f"{FIREWALL}alias.office": "cluster/Office",
            f"{FIREWALL}alias.vm": "vm/pve1/4300/backend",
            f"{FIREWALL}alias.container": "container/pve1/4301/backend",
            f"{FIREWALL}ipset.trusted": "cluster/trusted",
            f"{FIREWALL}ipset.vm": "vm/pve1/4300/peers",
            f"{FIREWALL}ipset.container": "container/pve1/4301/peers",
            f"{FIREWALL}options.vm": "vm/pve1/4300",
            f"{FIREWALL}options.container": "container/pve1/4301",
            f"{FIREWALL}rules.cluster": "cluster",
            f"{FIREWALL}rules.node": "node/pve1",
            f"{FIREWALL}rules.vm": "vm/pve1/4300",
            f"{FIREWALL}rules.container": "container/pve1/4301",
        },
        drift=_drift,
        drifted=(
            f"{PREFIX}cluster_firewall.all",
            "proxmox_node_firewall.full",
            f"{FIREWALL}options.vm",
            f"{FIREWALL}alias.office",
            f"{FIREWALL}ipset.trusted",
            f"{FIREWALL}ipset.container",
            f"{GROUP}.web",
            f"{FIREWALL}rules.vm",
            f"{FIREWALL}rules.node",
            f"{FIREWALL}rules.container",
        ),
        remove=_remove,
        removed=(
            f"{FIREWALL}alias.office",
            f"{FIREWALL}alias.vm",
            f"{FIREWALL}ipset.trusted",
            f"{FIREWALL}ipset.container",
            f"{GROUP}.web",
        ),
        hidden=("/nodes",),
        nothing={
            "cluster_firewall replace": "there is one cluster",
            "cluster_firewall_security_group replace": _NAMED,
            **{
                f"{kind} gone": _ALWAYS
                for kind in ("cluster_firewall", "firewall_options", "firewall_rules", "node_firewall")
            },
        },
        bpg_cannot={
            # It looks for what it made in the firewall of the other guest.
            "replace": ("error updating alias 'backend'", "no such alias"),
            **{
                f"import {FIREWALL}alias.{name}": ("doesn't support import",)
                for name in ("office", "vm", "container")
            },
        },
    ),
)
