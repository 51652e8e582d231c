terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
}

variable "name" {
  description = "The name of the machine."
  type        = string
}

variable "vm_id" {
  description = "The ID in Proxmox."
  type        = number
}

variable "target_node" {
  description = "The Proxmox node."
  type        = string
}

variable "bridge" {
  description = "The bridge of the network card."
  type        = string
}

variable "mac_address" {
  description = "The address of the network card, for which the DHCP server has a fixed IP address."
  type        = string
}

variable "pool_id" {
  description = "The resource pool."
  type        = string
}

variable "iso_file_id" {
  description = "The installer that the machine starts from."
  type        = string
}

resource "proxmox_virtual_environment_vm" "this" {
  node_name = var.target_node
  vm_id     = var.vm_id
  name      = var.name
  pool_id   = var.pool_id
  tags      = ["kubernetes"]

  cpu {
    cores = 2
    type  = "host"
  }

  memory {
    dedicated = 2048
  }

  cdrom {
    file_id = var.iso_file_id
  }

  disk {
    datastore_id = "local-lvm"
    interface    = "scsi0"
    size         = 20
  }

  network_device {
    bridge      = var.bridge
    vlan_id     = 20
    mac_address = var.mac_address
  }
}

output "name" {
  description = "The name of the machine."
  value       = proxmox_virtual_environment_vm.this.name
}
