# What OpenTofu itself would take without a word, or report without a place. Each sentence begins with the
# address of the value, by which stackyard finds the line in the data file.
locals {
  by_name = { for one in local.guests : one.name => one.at... }
  by_id   = { for one in local.guests : tostring(one.vm_id) => "${one.at}.${local.id_field}"... }

  # The block of settings that a guest's own value comes from.
  field_at = {
    for one in local.hosts : one.at => {
      for name in ["os_version", "ipv4_address", "cloud_init_user"] : name => (
        local.is_old ? (name == "ipv4_address" ? "${one.at}.ip" : name == "os_version" ? format("%s[%q].template", var.form, one.key) : "user_profile")
        : name == "cloud_init_user" ? (one.node.cloud_init_user != null ? "${one.at}.${name}" : format("%s[%q].%s", var.form, one.key, name))
        : name == "ipv4_address" || try(one.node.vm_config[name], null) != null ? "${one.at}.${lookup(local.configs, one.app.type, "")}.${name}"
        : format("%s[%q].vm_config.%s", var.form, one.key, name)
      )
    }
  }

  problems = concat(
    var.problems,
    [
      for name in [var.form] : "`${name}` has no entry: that would destroy every guest of this stack. To do that, use `stackyard destroy`."
      if var.resources != null && length(local.apps) == 0 && length(var.problems) == 0
    ],
    [
      for key, app in local.apps : "`${format("%s[%q].type", var.form, key)}` is \"${app.type}\": it has to be `vm` or `lxc`."
      if !contains(keys(local.configs), app.type) && !local.is_old
    ],
    [
      for key, app in local.apps : "`${format("%s[%q].nodes", var.form, key)}` has no entry: name a host, or remove the whole entry `${key}`."
      if length(app.nodes) == 0
    ],
    [
      for key, app in local.apps : "`${format("%s[%q].%s", var.form, key, local.configs[app.type])}` is missing: the type \"${app.type}\" needs it (`${local.configs[app.type]} = {}` takes every default)."
      if contains(keys(local.configs), app.type) && (app.type == "vm" ? app.vm_config == null : app.lxc_config == null)
    ],
    [
      for key, app in local.apps : "`${format("%s[%q].%s", var.form, key, app.type == "vm" ? "lxc_config" : "vm_config")}` does not belong to the type \"${app.type}\"."
      if contains(keys(local.configs), app.type) && (app.type == "vm" ? app.lxc_config != null : app.vm_config != null)
    ],
    [
      for one in local.hosts : "`${one.at}.${one.app.type == "vm" ? "lxc_config" : "vm_config"}` does not belong to the type \"${one.app.type}\"."
      if contains(keys(local.configs), one.app.type) && (one.app.type == "vm" ? one.node.lxc_config != null : one.node.vm_config != null)
    ],
    flatten([
      for name, places in local.by_name : [
        for at in slice(places, 1, length(places)) : "`${at}` has the name of another host, `${places[0]}`."
      ]
    ]),
    flatten([
      for id, places in local.by_id : [
        for at in slice(places, 1, length(places)) : "`${at}` is ${id}, and so is `${places[0]}`."
      ]
    ]),
    [
      for one in local.guests : "`${one.at}.${local.id_field}` is ${one.vm_id}: an ID in Proxmox is a whole number from 100 to 999999999."
      if one.vm_id < 100 || one.vm_id > 999999999 || floor(one.vm_id) != one.vm_id
    ],
    [
      for one in local.guests : "`${one.at}` has no Proxmox node: set `${local.is_old ? "resource_defaults.target_node" : "node_name"}`."
      if one.node_name == null
    ],
    [
      for one in local.guests : "`${local.field_at[one.at].ipv4_address}` is \"${one.ipv4_address}\": it has to be `dhcp`, or an address with its mask, such as 192.168.0.5/24."
      if one.ipv4_address != "dhcp" && !can(cidrhost(one.ipv4_address, 0))
    ],
    distinct([
      for one in local.guests : "`${local.field_at[one.at].cloud_init_user}` is \"${one.cloud_init_user}\", and `user_credentials` has no such user."
      if !contains(var.users, one.cloud_init_user)
    ]),
    distinct([
      for one in local.guests : "`${local.field_at[one.at].os_version}`: `os_images` has no image \"${one.os_type}-${one.os_version}\"."
      if one.type == "vm" && try(one.image_file_id == null && !contains(var.os_images, "${one.os_type}-${one.os_version}"), false)
    ]),
    distinct([
      for one in local.guests : "`${format("%s[%q].lxc_config", var.form, one.app_key)}` needs either `template_file_id` or `template_url`, and not both."
      if one.type == "lxc" && try((one.template_file_id == null) == (one.template_url == null), false)
    ]),
  )
}
