# The older form, `resource_groups`, as `resources`. What is left out gets its default there.
locals {
  groups = var.resource_groups == null ? {} : var.resource_groups
  types  = { qemu = "vm", lxc = "lxc" }

  # `local:import/debian-12.qcow2` is a file on a datastore, `https://...` is one to download, and anything
  # else is the name of an image, such as `ubuntu-24.04`.
  is_url  = { for key, group in local.groups : key => strcontains(group.template, "://") }
  is_file = { for key, group in local.groups : key => strcontains(group.template, ":") && !local.is_url[key] }
  words   = { for key, group in local.groups : key => split("-", group.template) }

  profiles = {
    for key, group in local.groups : key => try(var.hardware_profiles[group.type][group.hardware_profile_key], null)
  }

  addresses = {
    for key, group in local.groups : key => {
      for host, node in group.nodes : host => node.ip == "dhcp" ? "dhcp" : "${node.ip}/${var.network_defaults.cidr_mask}"
    }
  }

  resources = {
    for key, group in local.groups : key => {
      type            = lookup(local.types, group.type, group.type)
      enabled         = group.enabled
      node_name       = var.resource_defaults.target_node
      tags            = group.tags
      cloud_init_user = var.user_profile
      vm_config = group.type != "qemu" ? null : {
        cpu_cores         = try(local.profiles[key].cores, null)
        memory_size       = try(local.profiles[key].memory, null)
        disk_size         = try(local.profiles[key].disk, null)
        disk_datastore_id = var.resource_defaults.storage_pool
        vlan_bridge       = var.resource_defaults.network_bridge
        ipv4_gateway      = var.network_defaults.gateway
        image_file_id     = local.is_file[key] ? group.template : null
        os_type           = local.is_file[key] ? null : local.words[key][0]
        os_version        = local.is_file[key] ? null : join("-", slice(local.words[key], 1, length(local.words[key])))
      }
      lxc_config = group.type != "lxc" ? null : {
        cpu_cores         = try(local.profiles[key].cores, null)
        memory_size       = try(local.profiles[key].memory, null)
        disk_size         = try(local.profiles[key].disk, null)
        disk_datastore_id = var.resource_defaults.storage_pool
        vlan_bridge       = var.resource_defaults.network_bridge
        ipv4_gateway      = var.network_defaults.gateway
        template_file_id  = local.is_url[key] ? null : group.template
        template_url      = local.is_url[key] ? group.template : null
      }
      nodes = {
        for host, node in group.nodes : host => {
          vm_id      = node.id
          vm_config  = group.type != "qemu" ? null : { ipv4_address = local.addresses[key][host] }
          lxc_config = group.type != "lxc" ? null : { ipv4_address = local.addresses[key][host] }
        }
      }
    }
  }

  problems = concat(
    var.resource_groups != null && var.resources_given ? [
      "`resource_groups` and `resources` are both set: keep one of the two.",
    ] : [],
    var.resource_groups == null && !var.resources_given ? [
      "Neither `resources` nor `resource_groups` is set: this stack has no guests.",
    ] : [],
    [
      for key, group in local.groups : "`${format("resource_groups[%q].type", key)}` is \"${group.type}\": it has to be `qemu` or `lxc`."
      if !contains(keys(local.types), group.type)
    ],
    [
      for key, group in local.groups : "`${format("resource_groups[%q].hardware_profile_key", key)}` is \"${group.hardware_profile_key}\", and `hardware_profiles.${group.type}` has no such profile."
      if contains(keys(local.types), group.type) && local.profiles[key] == null
    ],
    [
      for key, group in local.groups : "`${format("resource_groups[%q].template", key)}` is \"${group.template}\": a VM needs the name of an image or a file on a datastore."
      if group.type == "qemu" && local.is_url[key]
    ],
    [
      for key, group in local.groups : "`${format("resource_groups[%q].template", key)}` is \"${group.template}\": a container needs a file on a datastore or an address (https://...)."
      if group.type == "lxc" && !local.is_url[key] && !local.is_file[key]
    ],
  )
}
