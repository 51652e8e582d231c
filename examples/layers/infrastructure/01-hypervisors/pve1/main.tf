# Layer 0: what the host itself has. It changes rarely.
terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
  backend "http" {}
}

resource "proxmox_virtual_environment_network_linux_bridge" "platform" {
  node_name  = var.target_node
  name       = "vmbr1"
  vlan_aware = true
  comment    = "platforms, with VLANs"
}

resource "proxmox_virtual_environment_pool" "platform" {
  pool_id = "platform"
  comment = "virtual machines of the platforms"
}

output "target_node" {
  description = "The node of this host."
  value       = var.target_node
}

output "bridge" {
  description = "The bridge for platforms."
  value       = proxmox_virtual_environment_network_linux_bridge.platform.name
}

output "pool_id" {
  description = "The resource pool for platforms."
  value       = proxmox_virtual_environment_pool.platform.pool_id
}
