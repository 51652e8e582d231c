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
