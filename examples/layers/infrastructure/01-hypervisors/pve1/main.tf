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

variable "target_node" {
  description = "The Proxmox node."
  type        = string
  default     = "pve1"
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
  value = var.target_node
}

output "bridge" {
  value = proxmox_virtual_environment_network_linux_bridge.platform.name
}

output "pool_id" {
  value = proxmox_virtual_environment_pool.platform.pool_id
}
