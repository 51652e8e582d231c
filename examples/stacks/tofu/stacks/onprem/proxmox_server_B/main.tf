terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
}

resource "proxmox_download_file" "image" {
  node_name    = var.node_name
  datastore_id = "local"
  content_type = "import"
  file_name    = "debian-12.qcow2"
  url          = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"
}

resource "proxmox_download_file" "template" {
  node_name    = var.node_name
  datastore_id = "local"
  content_type = "vztmpl"
  url          = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
}

module "vm" {
  source   = "../../../modules/proxmox_qemu_vm"
  for_each = var.vms

  name          = each.key
  node_name     = var.node_name
  vm_id         = each.value.vm_id
  cores         = each.value.cores
  memory_mib    = each.value.memory_mib
  tags          = each.value.tags
  image_file_id = proxmox_download_file.image.id
  user_password = var.guest_password
}

module "container" {
  source   = "../../../modules/proxmox_lxc_container"
  for_each = var.containers

  name             = each.key
  node_name        = var.node_name
  vm_id            = each.value.vm_id
  cores            = each.value.cores
  memory_mib       = each.value.memory_mib
  tags             = each.value.tags
  template_file_id = proxmox_download_file.template.id
  root_password    = var.guest_password
}
