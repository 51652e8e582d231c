# Layer 1: the machine that keeps files, and the store of stackyard. It takes nothing from other stacks: it can be
# built again when no other state is there.
terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
  backend "http" {}
}

resource "proxmox_virtual_environment_vm" "storage" {
  node_name = var.target_node
  vm_id     = var.vm_id
  name      = "storage"
  tags      = ["storage"]

  cpu {
    cores = 2
    type  = "host"
  }

  memory {
    dedicated = 4096
  }

  # The system.
  disk {
    datastore_id = "local-lvm"
    interface    = "scsi0"
    size         = 16
  }

  # The pool. With a passed through HBA in place of it, the disks survive the machine.
  disk {
    datastore_id = "local-lvm"
    interface    = "scsi1"
    size         = 32
  }

  network_device {
    bridge      = "vmbr0"
    mac_address = "BC:24:11:00:10:01"
  }
}

# A system without a guest agent: the inventory gets its address here.
output "ansible_inventory" {
  description = "The machine and its address, for the inventory."
  value = {
    hosts = { storage = { ansible_host = "10.20.0.5" } }
  }
}
