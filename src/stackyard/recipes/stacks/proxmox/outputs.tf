output "guests" {
  description = "Every guest by its host name: ID, node and IPv4 address."
  value = {
    for name, one in merge(module.vm, module.container) : name => {
      vm_id        = one.vm_id
      node_name    = one.node_name
      ipv4_address = one.ipv4_address
    }
  }
}

# stackyard adds addresses, users, tags and nodes; no password is ever in an inventory.
output "ansible_inventory" {
  description = "Groups of the hosts, and variables of the groups."
  value = {
    hosts  = module.guests.ansible_hosts
    groups = module.guests.ansible_groups
  }
}
