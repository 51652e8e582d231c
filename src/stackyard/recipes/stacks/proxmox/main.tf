# Guests from data: vms.tfvars says which, the modules say how.
module "resource_groups" {
  source = "../../../modules/resource_groups"

  resource_groups   = var.resource_groups
  resources_given   = var.resources != null
  hardware_profiles = var.hardware_profiles
  resource_defaults = var.resource_defaults
  network_defaults  = var.network_defaults
  user_profile      = var.user_profile
}

module "guests" {
  source = "../../../modules/resource_normalizer"

  # The two have different types, so that a conditional cannot choose between them.
  resources        = [var.resources, module.resource_groups.resources][var.resource_groups == null ? 0 : 1]
  form             = var.resource_groups == null ? "resources" : "resource_groups"
  problems         = concat(module.resource_groups.problems, local.problems)
  target_node      = var.target_node
  target_datastore = var.target_datastore
  image_datastore  = var.image_datastore
  os_images        = keys(var.os_images)
  users            = nonsensitive(keys(var.user_credentials))
}

locals {
  problems = var.environment_name == null || var.environment_name == var.workspace ? [] : [
    "`environment_name` is \"${coalesce(var.environment_name, "-")}\", and this is the workspace \"${var.workspace}\".",
  ]

  # One download for each node and file, of those that are not on a datastore already.
  image_downloads = {
    for one in values(module.guests.vms) : "${one.node_name}/${one.os_type}-${one.os_version}" => {
      node_name = one.node_name
      image     = "${one.os_type}-${one.os_version}"
    }... if one.image_file_id == null
  }
  template_downloads = {
    for one in values(module.guests.containers) : "${one.node_name}/${basename(one.template_url)}" => {
      node_name          = one.node_name
      datastore_id       = one.template_datastore_id
      url                = one.template_url
      checksum           = one.template_checksum
      checksum_algorithm = one.template_checksum == null ? null : one.template_checksum_algorithm
    }... if one.template_file_id == null
  }
}

resource "proxmox_download_file" "image" {
  for_each = local.image_downloads

  node_name          = each.value[0].node_name
  datastore_id       = var.image_datastore
  content_type       = "import"
  url                = var.os_images[each.value[0].image].url
  file_name          = var.os_images[each.value[0].image].file_name
  checksum           = var.os_images[each.value[0].image].checksum
  checksum_algorithm = var.os_images[each.value[0].image].checksum_algorithm
  overwrite          = false
}

resource "proxmox_download_file" "template" {
  for_each = local.template_downloads

  node_name          = each.value[0].node_name
  datastore_id       = each.value[0].datastore_id
  content_type       = "vztmpl"
  url                = each.value[0].url
  checksum           = each.value[0].checksum
  checksum_algorithm = each.value[0].checksum_algorithm
  overwrite          = false
}

module "vm" {
  source   = "../../../modules/proxmox_qemu_vm"
  for_each = module.guests.vms

  name        = each.key
  node_name   = each.value.node_name
  vm_id       = each.value.vm_id
  description = each.value.description
  tags        = each.value.tags
  on_boot     = each.value.on_boot
  started     = each.value.started

  cpu_cores         = each.value.cpu_cores
  cpu_sockets       = each.value.cpu_sockets
  memory_size       = each.value.memory_size
  disk_datastore_id = each.value.disk_datastore_id
  disk_size         = each.value.disk_size
  disk_ssd          = each.value.disk_ssd
  additional_disks  = each.value.additional_disks
  pci_devices       = each.value.pci_devices
  image_file_id = (
    each.value.image_file_id != null ? each.value.image_file_id
    : proxmox_download_file.image["${each.value.node_name}/${each.value.os_type}-${each.value.os_version}"].id
  )

  vlan_bridge  = each.value.vlan_bridge
  vlan_id      = each.value.vlan_id
  ipv4_address = each.value.ipv4_address
  ipv4_gateway = each.value.ipv4_gateway
  dns_servers  = var.dns_servers

  username      = nonsensitive(var.user_credentials[each.value.cloud_init_user].username)
  user_password = var.user_credentials[each.value.cloud_init_user].password
  user_ssh_keys = nonsensitive(var.user_credentials[each.value.cloud_init_user].ssh_keys)
}

module "container" {
  source   = "../../../modules/proxmox_lxc_container"
  for_each = module.guests.containers

  name        = each.key
  node_name   = each.value.node_name
  vm_id       = each.value.vm_id
  description = each.value.description
  tags        = each.value.tags
  on_boot     = each.value.on_boot
  started     = each.value.started

  unprivileged      = each.value.unprivileged
  nesting           = each.value.nesting
  fuse              = each.value.fuse
  keyctl            = each.value.keyctl
  cpu_cores         = each.value.cpu_cores
  memory_size       = each.value.memory_size
  disk_datastore_id = each.value.disk_datastore_id
  disk_size         = each.value.disk_size
  mount_points      = each.value.mount_points
  os_type           = each.value.os_type
  template_file_id = (
    each.value.template_file_id != null ? each.value.template_file_id
    : proxmox_download_file.template["${each.value.node_name}/${basename(each.value.template_url)}"].id
  )

  vlan_bridge  = each.value.vlan_bridge
  vlan_id      = each.value.vlan_id
  ipv4_address = each.value.ipv4_address
  ipv4_gateway = each.value.ipv4_gateway
  dns_servers  = var.dns_servers

  root_password = var.user_credentials[each.value.cloud_init_user].password
  root_ssh_keys = nonsensitive(var.user_credentials[each.value.cloud_init_user].ssh_keys)
}
