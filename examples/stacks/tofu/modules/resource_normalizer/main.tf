# Applications with their hosts become flat maps of guests: what a host sets wins over its application.
locals {
  apps     = var.resources == null ? {} : var.resources
  is_old   = var.form == "resource_groups"
  id_field = local.is_old ? "id" : "vm_id"
  configs  = { vm = "vm_config", lxc = "lxc_config" }

  hosts = flatten([
    for key, app in local.apps : [
      for host, node in app.nodes : {
        key  = key
        host = host
        app  = app
        node = node
        at   = format("%s[%q].nodes[%q]", var.form, key, host)
      }
    ]
  ])

  guests = [
    for one in local.hosts : merge(
      { ipv4_address = "dhcp" },
      try({ for name, value in one.app.vm_config : name => value if one.app.type == "vm" }, {}),
      try({ for name, value in one.app.lxc_config : name => value if one.app.type == "lxc" }, {}),
      try({ for name, value in one.node.vm_config : name => value if one.app.type == "vm" && value != null }, {}),
      try({ for name, value in one.node.lxc_config : name => value if one.app.type == "lxc" && value != null }, {}),
      # A host that names a template or an image in one way takes back the other way of its application.
      try({
        for name in ["template_file_id", "template_url"] : name => one.node.lxc_config[name]
        if one.app.type == "lxc" && (one.node.lxc_config.template_file_id != null || one.node.lxc_config.template_url != null)
      }, {}),
      try({
        for name in ["image_file_id"] : name => one.node.vm_config[name]
        if one.app.type == "vm" && (one.node.vm_config.os_type != null || one.node.vm_config.os_version != null)
      }, {}),
      {
        at              = one.at
        app_key         = one.key
        name            = one.host
        type            = one.app.type
        vm_id           = one.node.vm_id
        enabled         = one.node.enabled != null ? one.node.enabled : one.app.enabled
        description     = one.node.description != null ? one.node.description : one.app.description
        on_boot         = one.node.on_boot != null ? one.node.on_boot : one.app.on_boot
        started         = one.node.started != null ? one.node.started : one.app.started
        cloud_init_user = one.node.cloud_init_user != null ? one.node.cloud_init_user : one.app.cloud_init_user
        node_name = (
          one.node.node_name != null ? one.node.node_name
          : one.app.node_name != null ? one.app.node_name
          : one.app.type == "lxc" ? var.target_node
          : null
        )
        tags = sort(distinct(concat(one.app.tags, one.node.tags)))
        ansible_groups = {
          for group in setunion(keys(one.app.ansible_groups), keys(one.node.ansible_groups)) :
          group => merge(lookup(one.app.ansible_groups, group, {}), lookup(one.node.ansible_groups, group, {}))
        }
      },
    )
  ]

  # Of two guests with the same name, problems.tf reports the second; the engine would only say "duplicate".
  named = { for one in local.guests : one.name => one... if one.enabled }
  vms = {
    for name, same in local.named : name => merge(same[0], {
      disk_datastore_id = try(coalesce(same[0].disk_datastore_id, var.target_datastore), null)
    }) if same[0].type == "vm"
  }
  known_os = ["alpine", "archlinux", "centos", "debian", "devuan", "fedora", "gentoo", "nixos", "opensuse", "ubuntu"]
  template_os = {
    for name, same in local.named : name => try(
      [for os in local.known_os : os if startswith(basename(coalesce(same[0].template_file_id, same[0].template_url)), os)][0],
      "unmanaged",
    )
  }
  lxcs = {
    for name, same in local.named : name => merge(same[0], {
      disk_datastore_id     = try(coalesce(same[0].disk_datastore_id, var.target_datastore), null)
      template_datastore_id = try(coalesce(same[0].template_datastore_id, var.image_datastore), null)
      # Proxmox sets up the network of a container only if it knows the operating system: by its name, where
      # the template is named after it, such as debian-13-standard_13.1-2_amd64.tar.zst.
      os_type = try(coalesce(same[0].os_type, local.template_os[name]), "unmanaged")
    }) if same[0].type == "lxc"
  }
  images = sort(distinct([for one in local.vms : "${one.os_type}-${one.os_version}" if try(one.image_file_id, "") == null]))
}
