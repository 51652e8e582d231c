locals {
  is_static = var.ipv4_address != "dhcp"
  reported  = flatten(coalesce(proxmox_virtual_environment_vm.this.ipv4_addresses, []))
  # The agent also reports loopback and link-local addresses.
  usable = [for one in local.reported : one if !startswith(one, "127.") && !startswith(one, "169.254.")]
}

resource "proxmox_virtual_environment_vm" "this" {
  node_name   = var.node_name
  vm_id       = var.vm_id
  name        = var.name
  description = var.description
  tags        = sort(distinct([for tag in concat(var.constant_tags, var.tags) : lower(tag)]))
  on_boot     = var.on_boot
  started     = var.started

  machine       = "q35"
  bios          = "ovmf"
  scsi_hardware = "virtio-scsi-pci"
  boot_order    = ["scsi0"]

  agent {
    enabled = var.agent_enabled
    timeout = var.agent_timeout
  }

  operating_system {
    type = "l26"
  }

  cpu {
    cores   = var.cpu_cores
    sockets = var.cpu_sockets
    type    = var.cpu_type
  }

  memory {
    dedicated = var.memory_size
  }

  efi_disk {
    datastore_id      = var.disk_datastore_id
    type              = "4m"
    pre_enrolled_keys = true
  }

  disk {
    datastore_id = var.disk_datastore_id
    interface    = "scsi0"
    import_from  = var.image_file_id
    size         = var.disk_size
    ssd          = var.disk_ssd
    cache        = "writeback"
    discard      = "on"
  }

  dynamic "disk" {
    for_each = var.additional_disks

    content {
      datastore_id = coalesce(disk.value.datastore_id, var.disk_datastore_id)
      interface    = "scsi${disk.key + 1}"
      size         = disk.value.size
      ssd          = disk.value.ssd
      backup       = disk.value.backup
      cache        = "writeback"
      discard      = "on"
    }
  }

  dynamic "hostpci" {
    for_each = var.pci_devices

    content {
      device  = "hostpci${hostpci.key}"
      mapping = hostpci.value.mapping
      id      = hostpci.value.id
      pcie    = hostpci.value.pcie
      rombar  = hostpci.value.rombar
      xvga    = hostpci.value.primary_gpu
    }
  }

  network_device {
    bridge  = var.vlan_bridge
    vlan_id = var.vlan_id
  }

  serial_device {
    device = "socket"
  }

  initialization {
    datastore_id = var.disk_datastore_id
    interface    = "ide0"

    dns {
      servers = var.dns_servers
    }

    ip_config {
      ipv4 {
        address = var.ipv4_address
        gateway = local.is_static ? var.ipv4_gateway : null
      }

      ipv6 {
        address = var.ipv6_address
      }
    }

    user_account {
      username = var.username
      password = var.user_password
      keys     = var.user_ssh_keys
    }
  }

  lifecycle {
    # The image is copied once: a newer one is for new machines.
    ignore_changes = [disk[0].import_from]
  }
}
