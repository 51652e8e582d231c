# Layer 1: the machines of a cluster, on the bridge and in the pool of layer 0.
terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
  backend "http" {}
}

resource "proxmox_download_file" "talos" {
  node_name    = var.target_node
  datastore_id = "local"
  content_type = "iso"
  file_name    = "talos.iso"
  url          = "https://factory.talos.dev/image/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba/v1.11.0/metal-amd64.iso"
}

module "machine" {
  source = "../../modules/cluster_vm"
  count  = var.nodes_count

  name        = "${var.cluster_name}-${count.index + 1}"
  vm_id       = 400 + count.index
  target_node = var.target_node
  bridge      = var.bridge
  mac_address = format("BC:24:11:00:20:%02X", 11 + count.index)
  pool_id     = var.pool_id
  iso_file_id = proxmox_download_file.talos.id
}

# Talos has no guest agent by default, so that Proxmox does not know the addresses. The inventory gets them here.
output "ansible_inventory" {
  description = "The machines and their addresses, for the inventory."
  value = {
    hosts = {
      for index, machine in module.machine : machine.name => { ansible_host = "10.20.0.${11 + index}" }
    }
  }
}
