locals {
  is_static = var.ipv4_address != "dhcp"
}

resource "proxmox_virtual_environment_container" "this" {
  node_name     = var.node_name
  vm_id         = var.vm_id
  description   = var.description
  tags          = sort(distinct([for tag in concat(var.constant_tags, var.tags) : lower(tag)]))
  start_on_boot = var.on_boot
  started       = var.started
  unprivileged  = var.unprivileged

  operating_system {
    template_file_id = var.template_file_id
    type             = var.os_type
  }

  cpu {
    cores = var.cpu_cores
  }

  memory {
    dedicated = var.memory_size
    swap      = var.swap_size
  }

  disk {
    datastore_id = var.disk_datastore_id
    size         = var.disk_size
  }

  # Proxmox lets only root change the features of a privileged container.
  dynamic "features" {
    for_each = var.unprivileged ? [true] : []

    content {
      nesting = var.nesting
      fuse    = var.fuse
      keyctl  = var.keyctl
    }
  }

  dynamic "mount_point" {
    for_each = var.mount_points

    content {
      path      = mount_point.value.path
      volume    = mount_point.value.volume
      size      = mount_point.value.size
      backup    = mount_point.value.backup
      read_only = mount_point.value.read_only
    }
  }

  network_interface {
    name    = "eth0"
    bridge  = var.vlan_bridge
    vlan_id = var.vlan_id
  }

  dynamic "wait_for_ip" {
    for_each = var.started && !local.is_static ? [true] : []

    content {
      ipv4 = true
    }
  }

  initialization {
    hostname = var.name

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
      password = var.root_password
      keys     = var.root_ssh_keys
    }
  }

  lifecycle {
    # The template is unpacked once: a newer one is for new containers.
    ignore_changes = [operating_system[0].template_file_id]
  }
}
