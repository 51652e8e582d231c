# Layer 2: a system on its own.
terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
  backend "http" {}
}

resource "proxmox_download_file" "debian" {
  node_name    = var.target_node
  datastore_id = "local"
  content_type = "vztmpl"
  url          = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
}

resource "proxmox_virtual_environment_container" "pihole" {
  node_name = var.target_node
  vm_id     = 500
  tags      = ["dns"]

  operating_system {
    template_file_id = proxmox_download_file.debian.id
    type             = "debian"
  }

  memory {
    dedicated = 512
  }

  disk {
    datastore_id = "local-lvm"
    size         = 4
  }

  network_interface {
    name   = "eth0"
    bridge = "vmbr0"
  }

  initialization {
    hostname = "pihole"

    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
  }
}
