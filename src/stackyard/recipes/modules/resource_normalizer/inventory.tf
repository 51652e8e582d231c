# Groups of a host: its application, its type and its `ansible_groups`. stackyard adds tags, node and kind.
locals {
  enabled = [for name, same in local.named : same[0]]

  members = {
    for group in distinct(flatten([for one in local.enabled : keys(one.ansible_groups)])) :
    group => [for one in local.enabled : one.ansible_groups[group] if contains(keys(one.ansible_groups), group)]
  }

  # A variable on which all hosts of a group agree is one of the group; any other is one of each host.
  ansible_groups = {
    for group, members in local.members : group => {
      for name in distinct(flatten([for one in members : keys(one)])) : name => members[0][name]
      if length(distinct([for one in members : lookup(one, name, null)])) == 1
    }
  }

  ansible_hosts = {
    for one in local.enabled : one.name => merge(concat([{}], [
      for group, values in one.ansible_groups : {
        for name, value in values : name => value if !contains(keys(local.ansible_groups[group]), name)
      }
    ], [{ groups = sort(distinct(concat([one.app_key, one.type], keys(one.ansible_groups)))) }])...)
  }
}
