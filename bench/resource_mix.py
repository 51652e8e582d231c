"""A configuration of many kinds of resource, as large as one wants it."""

from __future__ import annotations

__all__ = ["KINDS", "make_mix"]

# One of each in every part of the configuration; `N` is the number of the part.
_PART = """
resource "proxmox_virtual_environment_group" "rN" {
  group_id = "groupN"
  comment  = "part N"
}
resource "proxmox_virtual_environment_role" "rN" {
  role_id    = "RoleN"
  privileges = ["VM.Audit", "Datastore.Audit"]
}
resource "proxmox_virtual_environment_user" "rN" {
  user_id  = "userN@pve"
  password = "password-N"
  groups   = [proxmox_virtual_environment_group.rN.group_id]
}
resource "proxmox_acl" "rN" {
  path     = "/vms/${10000 + N}"
  group_id = proxmox_virtual_environment_group.rN.group_id
  role_id  = proxmox_virtual_environment_role.rN.role_id
}
resource "proxmox_user_token" "rN" {
  user_id    = proxmox_virtual_environment_user.rN.user_id
  token_name = "tokenN"
}
resource "proxmox_realm_openid" "rN" {
  realm      = "openidN"
  issuer_url = "https://id.example.org/N"
  client_id  = "client-N"
}
resource "proxmox_realm_ldap" "rN" {
  realm     = "ldapN"
  server1   = "ldap.example.org"
  base_dn   = "dc=N,dc=example,dc=org"
  user_attr = "uid"
}
resource "proxmox_virtual_environment_pool" "rN" {
  pool_id = "poolN"
  comment = "part N"
}
resource "proxmox_storage_directory" "rN" {
  id      = "dirN"
  path    = "/srv/N"
  content = ["iso", "vztmpl"]
}
resource "proxmox_storage_nfs" "rN" {
  id      = "nfsN"
  server  = "10.9.0.1"
  export  = "/export/N"
  content = ["backup"]
}
resource "proxmox_storage_lvm" "rN" {
  id           = "lvmN"
  volume_group = "vgN"
  content      = ["images"]
}
resource "proxmox_storage_zfspool" "rN" {
  id       = "zfsN"
  zfs_pool = "tank/N"
  content  = ["images"]
}
resource "proxmox_metrics_server" "rN" {
  name   = "metricsN"
  server = "10.9.0.2"
  port   = 2003
  type   = "graphite"
}
resource "proxmox_hardware_mapping_pci" "rN" {
  name = "pciN"
  map  = [{ node = "pve1", id = "8086:a0f0", path = "0000:00:14.3", iommu_group = 5 }]
}
resource "proxmox_hardware_mapping_usb" "rN" {
  name = "usbN"
  map  = [{ node = "pve1", id = "0951:1666" }]
}
resource "proxmox_hardware_mapping_dir" "rN" {
  name = "dirN"
  map  = [{ node = "pve1", path = "/var/lib/vz" }]
}
resource "proxmox_virtual_environment_firewall_alias" "rN" {
  name = "aliasN"
  cidr = "10.9.0.0/24"
}
resource "proxmox_virtual_environment_firewall_ipset" "rN" {
  name = "setN"
  cidr { name = "10.9.1.0/24" }
  cidr { name = "10.9.2.0/24" }
}
resource "proxmox_virtual_environment_cluster_firewall_security_group" "rN" {
  name = "sgN"
  rule {
    type   = "in"
    action = "ACCEPT"
    dport  = "443"
    proto  = "tcp"
  }
}
resource "proxmox_sdn_zone_simple" "rN" {
  id = "zsN"
}
resource "proxmox_sdn_zone_vlan" "rN" {
  id     = "zvN"
  bridge = "vmbr0"
}
resource "proxmox_sdn_vnet" "rN" {
  id   = "vnN"
  zone = proxmox_sdn_zone_simple.rN.id
}
resource "proxmox_sdn_subnet" "rN" {
  cidr = "10.${floor(N / 250)}.${N % 250}.0/24"
  vnet = proxmox_sdn_vnet.rN.id
}
resource "proxmox_network_linux_bridge" "rN" {
  node_name = "pve1"
  name      = "brN"
  comment   = "part N"
}
resource "proxmox_acme_dns_plugin" "rN" {
  plugin = "dnsN"
  api    = "cf"
  data   = { CF_Key = "part-N" }
}
resource "proxmox_backup_job" "rN" {
  id       = "backupN"
  schedule = "sun 03:30"
  storage  = "local"
  all      = true
}
resource "proxmox_virtual_environment_file" "rN" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "vztmpl"
  source_raw {
    file_name = "partN.tar.gz"
    data      = "part N"
  }
}
resource "proxmox_virtual_environment_vm" "rN" {
  node_name = "pve1"
  vm_id     = 10000 + N
  name      = "vmN"
  started   = false
  memory { dedicated = 64 }
}
resource "proxmox_haresource" "rN" {
  resource_id = "vm:${proxmox_virtual_environment_vm.rN.vm_id}"
  state       = "stopped"
}
"""
# What a cluster has once.
_ONCE = """
resource "proxmox_virtual_environment_dns" "it" {
  node_name = "pve1"
  domain    = "example.org"
  servers   = ["10.9.0.53"]
}
resource "proxmox_virtual_environment_time" "it" {
  node_name = "pve1"
  time_zone = "Europe/Vienna"
}
resource "proxmox_cluster_options" "it" {
  language = "en"
  keyboard = "de"
}
resource "proxmox_node_config" "it" {
  node_name   = "pve1"
  description = "bench"
}
"""
_MARK = 'resource "proxmox_'
KINDS = (_PART + _ONCE).count(_MARK)


def make_mix(size: int) -> str:
    """Return a configuration with that many resources, of `KINDS` kinds."""
    parts = [_MARK + part for part in _PART.split(_MARK)[1:]]
    numbered = (
        parts[n % len(parts)].replace("N", str(n // len(parts))) for n in range(size - _ONCE.count(_MARK))
    )
    return _ONCE + "".join(numbered)
